"""Fixtures that several contract suites share."""

import pytest
from support.chroma_server import running_chroma


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory):
    """One real server for all tests marked ``server``; each keeps to collections of its own."""
    with running_chroma(tmp_path_factory.mktemp("chroma")) as server:
        yield server
