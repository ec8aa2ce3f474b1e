"""Roots for tests of the AMOS library: on a real folder, without waiting for the disk."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath

from amrita_plugin_memory.amos.ground import FileRoot, layout

P = PurePosixPath
ROOT = Path(__file__).resolve().parents[2]


def file_root(folder) -> FileRoot:
    return FileRoot.open(folder, sync=False)


def shared_folder() -> Path | None:
    """The folder of fixtures beside the repository, None when it is not there."""
    place = Path(os.environ.get("AMRITA_SHARED", ROOT.parent / "shared"))
    return place if place.is_dir() else None


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


def stored_messages(root: Path, actor="u1", session="s1") -> list[dict]:
    """Every message of a session on the disk, archive first."""
    folder = root / "users" / actor / "sessions" / session
    files = [*sorted((folder / "archive").glob("*.jsonl")), folder / "messages.jsonl"]
    return [record for file in files if file.exists() for record in lines_of(file)]


def said(messages) -> list[str]:
    return [message["content"] for message in messages]


def python(code: str, *args: str, **kw) -> subprocess.Popen:
    """A Python process that runs ``code`` with this project importable."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", code, *args], env=env, **kw)


def wait_for(path: Path, seconds: float = 20.0) -> None:
    """Until another process has made a file."""
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(path)
        time.sleep(0.005)


def scope(actor="u1", agent=None, session="s1"):
    return layout.make_scope(actor, agent, session)


def listing(folder: Path) -> list[str]:
    """Names in a folder, hidden ones too, sorted."""
    return sorted(path.name for path in folder.iterdir())
