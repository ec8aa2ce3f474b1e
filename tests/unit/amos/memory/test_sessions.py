import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.amos import P, file_root, lines_of, said, scope

from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.amos.memory import Sessions
from amrita_plugin_memory.kernel.errors import InvalidInput, LimitReached

TS = "2026-11-30T12:00:00Z"
S1 = scope()


@pytest.fixture
def files(tmp_path):
    return file_root(tmp_path)


@pytest.fixture
def sessions(files):
    return Sessions(files)


def path(files):
    return files.root / layout.messages(S1)


def seed(files, turns, **more):
    place = path(files)
    place.parent.mkdir(parents=True)
    rows = [
        {"role": role, "content": f"{role}{at}", "ts": TS, **more}
        for at in range(turns)
        for role in ("user", "assistant")
    ]
    place.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def test_a_turn_is_two_lines_the_reference_reads(files, sessions):
    added = sessions.add(S1, "问", "答\u2028", TS)
    assert lines_of(path(files)) == [
        {"role": "user", "content": "问", "ts": TS, "id": added.id, "turn": 1},
        {"role": "assistant", "content": "答\u2028", "ts": TS, "id": added.id, "turn": 1},
    ]
    assert path(files).read_text("utf-8").count("\n") == len(path(files).read_text("utf-8").splitlines()) == 2


def test_the_count_is_right_from_the_first_turn_on_and_after_another_program(files):
    seed(files, 3)
    assert Sessions(files).add(S1, "a", "b", TS).turns == 4
    assert Sessions(files).add(S1, "a", "b", TS).turns == 5
    with path(files).open("a") as file:
        file.write('{"role": "user", "content": "x"}\n{"role": "assistant", "content": "y"}\n')
    assert Sessions(files).add(S1, "a", "b", TS).turns == 7
    one, other = Sessions(files), Sessions(files)
    assert [s.add(S1, "a", "b", TS).turns for s in (one, other, one, other)] == [8, 9, 10, 11]


def test_adding_reads_the_same_few_bytes_however_long_the_session_is(files, monkeypatch):
    seed(files, 2)
    sessions = Sessions(files)
    sessions.add(S1, "a", "b", TS)
    with path(files).open("a") as file:
        file.write('{"role": "user", "content": "' + "x" * 100_000 + '"}\n')
    sessions.add(S1, "a", "b", TS)
    read: list[int] = []
    real = FileRoot.read

    def counting(self, rel, **kw):
        data = real(self, rel, **kw)
        read.append(len(data or b""))
        return data

    monkeypatch.setattr(FileRoot, "read", counting)
    for _ in range(5):
        sessions.add(S1, "a", "b", TS)
    assert sum(read) < 5 * 100


def test_a_prompt_costs_what_was_added_and_not_the_file(files, monkeypatch):
    seed(files, 500)
    sessions = Sessions(files)
    assert len(sessions.prompt(S1)) == 1000
    read: list[int] = []
    real = FileRoot.read

    def counting(self, rel, **kw):
        data = real(self, rel, **kw)
        read.append(len(data or b""))
        return data

    monkeypatch.setattr(FileRoot, "read", counting)
    assert len(sessions.prompt(S1)) == 1000
    assert read == []
    sessions.add(S1, "新", "newest", TS)
    assert said(sessions.prompt(S1))[-2:] == ["新", "newest"]
    assert max(read) < 1000


def test_a_snapshot_is_not_changed_by_what_comes_later(sessions):
    sessions.add(S1, "a", "b", TS)
    before = sessions.prompt(S1)
    sessions.add(S1, "c", "d", TS)
    assert said(before) == ["a", "b"]
    before.append("mine")
    assert said(sessions.prompt(S1)) == ["a", "b", "c", "d"]


def test_a_file_that_was_replaced_is_read_anew(files, sessions):
    sessions.add(S1, "a", "b", TS)
    assert said(sessions.prompt(S1)) == ["a", "b"]
    files.write(layout.messages(S1), b'{"role": "user", "content": "quite another text, and longer than before"}\n' * 3)
    assert len(sessions.prompt(S1)) == 3
    path(files).unlink()
    assert sessions.prompt(S1) == []


def test_a_file_rewritten_in_place_is_read_anew(files, sessions):
    seed(files, 3)
    sessions.prompt(S1)
    data = path(files).read_bytes().replace(b"user0", b"USER0").replace(b"assistant2", b"ASSISTANT2")
    with path(files).open("r+b") as file:
        file.write(data + b'{"role": "user", "content": "more"}\n')
    assert said(sessions.prompt(S1))[-2:] == ["ASSISTANT2", "more"]


def test_only_the_torn_line_is_lost(files, sessions):
    seed(files, 2)
    with path(files).open("ab") as file:
        file.write(b'{"role": "user", "content": "thr')
    assert said(sessions.prompt(S1)) == ["user0", "assistant0", "user1", "assistant1"]
    assert sessions.add(S1, "four", "4", TS).turns == 3
    assert said(sessions.prompt(S1)) == ["user0", "assistant0", "user1", "assistant1", "four", "4"]


def test_a_last_line_without_line_end_is_read_and_kept(files, sessions):
    seed(files, 1)
    with path(files).open("ab") as file:
        file.write(b'{"role": "user", "content": "no end"}')
    assert said(sessions.prompt(S1))[-1] == "no end"
    sessions.add(S1, "a", "b", TS)
    assert said(sessions.prompt(S1))[-3:] == ["no end", "a", "b"]


@pytest.mark.parametrize(
    ("damage", "lost"),
    [
        (lambda data: b"\xef\xbb\xbf" + data, 0),
        (lambda data: data.replace(b"\n", b"\r\n"), 0),
        (lambda data: data.replace(b"user1", b"us\xffr1"), 0),
        (lambda data: data.replace(b'{"role": "user", "content": "user1"', b'{"role: "user", "content": "user1"'), 1),
        (lambda data: b'[1]\n"x"\nnull\n' + data, 0),
        (lambda data: data.replace(b"user1", "us\u2028\x85r1".encode()), 0),
    ],
    ids=["BOM", "CRLF", "foreign byte", "broken line", "lines that are no objects", "line separators in a text"],
)
def test_damage_never_makes_a_session_unreadable(files, sessions, damage, lost):
    seed(files, 3)
    path(files).write_bytes(damage(path(files).read_bytes()))
    assert len(sessions.prompt(S1)) == 6 - lost
    sessions.add(S1, "after", "all", TS)
    assert said(sessions.prompt(S1))[-2:] == ["after", "all"]
    assert len(sessions.recent(S1, 3)) == 3


@pytest.mark.parametrize("text", [None, 5, b"x"])
def test_a_message_that_is_no_text_is_refused(sessions, text):
    with pytest.raises(InvalidInput):
        sessions.add(S1, text, "x", TS)
    assert sessions.prompt(S1) == []


def test_a_message_that_is_too_long_is_refused_and_nothing_is_stored(files):
    sessions = Sessions(files, max_message=10)
    with pytest.raises(LimitReached):
        sessions.add(S1, "ok", "x" * 11, TS)
    assert sessions.prompt(S1) == []


def test_a_lone_surrogate_costs_a_sign_and_not_the_turn(sessions):
    sessions.add(S1, "a\ud800b", "ok", TS)
    assert said(sessions.prompt(S1)) == ["a?b", "ok"]


def test_recent_messages_carry_the_id_of_their_turn(files, sessions):
    seed(files, 2)
    added = sessions.add(S1, "a", "b", TS)
    recent = sessions.recent(S1, 3)
    assert said(recent) == ["assistant1", "a", "b"]
    assert recent[1]["id"] == recent[2]["id"] == added.id
    assert recent[0]["id"] == sessions.turns(S1)[1].id
    assert sessions.recent(S1, 0) == []
    with pytest.raises(InvalidInput):
        sessions.recent(S1, -1)


def test_one_turn_is_deleted_by_its_id_and_the_others_stay_bytes_for_bytes(files, sessions):
    seed(files, 2)
    added = sessions.add(S1, "a", "b", TS)
    before = path(files).read_bytes()
    assert sessions.delete(S1, sessions.turns(S1)[1].id)
    assert said(sessions.prompt(S1)) == ["user0", "assistant0", "a", "b"]
    assert before.startswith(path(files).read_bytes()[:60])
    assert not sessions.delete(S1, "nothing")
    assert sessions.delete(S1, added.id)
    assert sessions.add(S1, "c", "d", TS).turns == 2


def test_of_two_turns_in_one_second_only_the_one_meant_goes(sessions):
    first, second = (sessions.add(S1, "same", "same", TS) for _ in range(2))
    assert sessions.delete(S1, second.id)
    assert [turn.id for turn in sessions.turns(S1)] == [first.id]


def test_a_turn_is_edited_in_the_session_or_in_its_archive(files, sessions):
    kept, gone = sessions.add(S1, "a", "b", TS), sessions.add(S1, "c", "d", TS)
    data = path(files).read_bytes().split(b"\n")
    files.write(layout.archive(S1, "20261130"), b"\n".join(data[:2]) + b"\n")
    files.write(layout.messages(S1), b"\n".join(data[2:]))
    assert sessions.edit(S1, kept.id, None, "B")
    assert sessions.edit(S1, gone.id, "C", None)
    assert said(lines_of(files.root / layout.archive(S1, "20261130"))) == ["a", "B"]
    assert said(sessions.prompt(S1)) == ["C", "d"]
    assert {row["id"] for row in lines_of(path(files))} == {gone.id}


def test_two_sessions_of_actors_with_a_common_prefix_are_two(sessions):
    sessions.add(scope("1234"), "a", "b", TS)
    assert sessions.prompt(scope("12345")) == []
    assert sessions.prompt(scope("1234", "agent")) == []


def test_threads_lose_no_turn(files):
    sessions = [Sessions(files) for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda at: sessions[at % 2].add(S1, f"u{at}", f"a{at}", TS).turns, range(60)))
    assert sorted(counts) == list(range(1, 61))
    rows = lines_of(path(files))
    assert {row["content"] for row in rows} == {f"{sign}{at}" for sign in "ua" for at in range(60)}
    assert [row["role"] for row in rows] == ["user", "assistant"] * 60
    assert [row["turn"] for row in rows[::2]] == list(range(1, 61))


async def test_fifty_tasks_at_once_lose_no_turn(sessions):
    await asyncio.gather(*(asyncio.to_thread(sessions.add, S1, f"u{at}", "a", TS) for at in range(50)))
    assert sessions.count(S1) == 50


def test_forgetting_a_session_takes_its_archive_along(files, sessions):
    sessions.add(S1, "a", "b", TS)
    files.write(layout.archive(S1, "20261130"), b"{}\n")
    assert sessions.forget(S1)
    assert not (files.root / layout.session_dir(S1)).exists()
    assert sessions.names(P("users/u1")) == []


def test_a_session_folder_that_is_a_link_is_refused(files, sessions, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    place = files.root / layout.session_dir(S1)
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput):
        sessions.add(S1, "a", "b", TS)


def test_a_session_of_more_than_64_mib_is_read_and_written_back_whole(files):
    seed(files, 3)
    rest = path(files).read_bytes()
    with path(files).open("wb") as file:
        file.write(b'{"role": "user", "content": "' + b"x" * (64 * 2**20) + b'"}\n' + rest)
    sessions = Sessions(files)
    assert [record["content"] for record in sessions.recent(S1, 2)] == ["user2", "assistant2"]
    assert sessions.count(S1) == 4
    assert sessions.delete(S1, sessions.turns(S1)[0].id)
    assert path(files).read_bytes() == rest
