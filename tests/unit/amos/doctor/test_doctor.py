import json

import pytest
from support.amos import P, file_root

from amrita_plugin_memory.amos.doctor import examine

TALK = P("users/u1/sessions/s1/messages.jsonl")
BIG = 64 * 2**20


@pytest.fixture
def files(tmp_path):
    return file_root(tmp_path / "root")


def test_a_transcript_of_more_than_64_mib_is_mended_and_not_cut(files):
    long = {"role": "user", "content": "x" * BIG}
    short = [{"role": "assistant", "content": str(at)} for at in range(3)]
    lines = [json.dumps(record).encode() + b"\n" for record in (long, *short)]
    files.write(TALK, lines[0] + b"no message\n" + b"".join(lines[1:]))
    done = examine(files, fix=True)
    assert "torn-lines" in {finding.code for finding in done.mended}
    assert (files.root / TALK).read_bytes() == b"".join(lines)
    assert b"no message" in (files.root / "logs/damaged-lines.log").read_bytes()


def test_a_note_and_an_index_of_more_than_64_mib_are_healthy(files):
    files.write(P("users/u1/profile.md"), b"x" * (BIG - 1) + "好".encode())  # a limit would cut the sign in two
    files.write_json(P("index.json"), {"users/u1/profile.md": {"tags": ["t"], "note": "x" * BIG}})
    found = {finding.code for finding in examine(files).found}
    assert not found & {"bad-text", "index"}
