"""kill -9 at random points of the long jobs, on real Chroma: every fact found afterwards, none twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
COUNT = os.environ.get("AMRITA_MEMORY_KILLS", "6")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="every run is a fork, which this system has not")
@pytest.mark.parametrize("job", ["reindex", "restore", "migrate"])
def test_killed_at_random_points_nothing_is_lost_and_nothing_comes_twice(job):
    command = [sys.executable, str(TESTS / "support" / "kills.py"), "--job", job, "--count", COUNT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=TESTS.parent)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["bad"] == [], done.stderr
    assert result["kills"] == int(COUNT)
