import os
import subprocess
import sys


def test_the_demo_plays_its_whole_story_on_the_real_host(tmp_path):
    command = [sys.executable, "-m", "amrita_plugin_memory", "demo", "--script", "--dir", str(tmp_path / "bot")]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "PYTHONUTF8": "1"},
        encoding="utf-8",
        timeout=840,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    # The proof itself, not only the exit code: the recorded prompt is quoted.
    assert "个请求都带着：<MEMO> 用户叫小林 </MEMO>" in done.stdout
    assert "步都真的发生了" in done.stdout
    assert "✗" not in done.stdout
