from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

import pytest

from amrita_plugin_memory.amos.ground import FileRoot, layout
from amrita_plugin_memory.amos.search import RetrieveOptions, Search, SearchOptions, render
from amrita_plugin_memory.amos.search.upkeep import INDEX_FILE
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.kernel.scope import Scope

ME = layout.make_scope("1234")


class Desk:
    """A root in a temporary folder with a search over it."""

    def __init__(self, folder: Path) -> None:
        self.files = FileRoot.open(folder / "root", sync=False)
        self.clock = ManualClock()
        self.search = Search(self.files, clock=self.clock)

    def put(self, path: str, text: str) -> None:
        self.files.write_text(PurePosixPath(path), text)

    def say(self, path: str, *turns: tuple[str, str], ts: str = "2026-11-30T10:00:00Z") -> None:
        lines = [
            {"role": role, "content": text, "ts": ts}
            for turn in turns
            for role, text in zip(("user", "assistant"), turn, strict=True)
        ]
        data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        self.files.append(PurePosixPath(path), data.encode())

    async def paths(self, text: str, who: Scope = ME, top_k: int = 10, **options: object) -> list[str]:
        found = await self.search.search(who, text, top_k, SearchOptions(**options))  # type: ignore[arg-type]
        return [hit.path for hit in found]


@pytest.fixture
async def desk(tmp_path: Path):
    here = Desk(tmp_path)
    yield here
    await here.search.close()


async def test_a_chinese_sentence_finds_what_its_words_are_in(desk: Desk) -> None:
    desk.put("users/1234/knowledge/geo/hangzhou.md", "# 杭州\n西湖边的酒店很多")
    desk.put("users/1234/knowledge/geo/beijing.md", "# 北京\n故宫")
    assert (await desk.paths("推荐一下杭州的酒店"))[0] == "users/1234/knowledge/geo/hangzhou.md"


@pytest.mark.parametrize("word", ["西湖", "カタカナ", "한국어", "привет", "cafe", "😀", "㐀㐁", "𠀀", "醋"])
async def test_words_of_every_script_are_found(desk: Desk, word: str) -> None:
    desk.put("users/1234/knowledge/d/e.md", "西湖醋鱼 カタカナ 한국어 Привет café 😀 㐀㐁 𠀀")
    desk.put("users/1234/knowledge/d/other.md", "nothing")
    assert await desk.paths(word) == ["users/1234/knowledge/d/e.md"]


async def test_names_are_searched(desk: Desk) -> None:
    desk.put("users/1234/knowledge/travel/e1.md", "内容")
    desk.put("shared/workflows/订酒店.md", "步骤")
    assert await desk.paths("e1") == ["users/1234/knowledge/travel/e1.md"]
    assert await desk.paths("travel") == ["users/1234/knowledge/travel/e1.md"]
    assert await desk.paths("酒店") == ["shared/workflows/订酒店.md"]


async def test_another_user_whose_id_begins_alike_is_never_seen(desk: Desk) -> None:
    desk.put("users/12345/knowledge/d/secret.md", "hotel")
    desk.put("users/12345/profile.md", "hotel")
    desk.put("users/123/profile.md", "hotel")
    desk.put("users/1234/profile.md", "hotel")
    desk.put("shared/knowledge/d/open.md", "hotel")
    assert sorted(await desk.paths("hotel")) == ["shared/knowledge/d/open.md", "users/1234/profile.md"]
    assert sorted(await desk.paths("hotel", layout.make_scope("12345"))) == [
        "shared/knowledge/d/open.md",
        "users/12345/knowledge/d/secret.md",
        "users/12345/profile.md",
    ]


async def test_an_agent_sees_its_own_sessions_and_not_another_agents(desk: Desk) -> None:
    desk.say("users/1234/agents/a/sessions/s/messages.jsonl", ("hotel one", "ok"))
    desk.say("users/1234/agents/b/sessions/s/messages.jsonl", ("hotel two", "ok"))
    assert await desk.paths("hotel", layout.make_scope("1234", "a")) == [
        "users/1234/agents/a/sessions/s/messages.jsonl"
    ]
    assert await desk.paths("hotel") == []


async def test_appended_turns_are_found_at_once_and_old_ones_stay(desk: Desk) -> None:
    path = "users/1234/sessions/s/messages.jsonl"
    desk.say(path, *[(f"第{i}句话 {'x' * 50}", "好") for i in range(20)])
    assert await desk.paths("第3句") == [path]
    desk.say(path, ("想吃西湖醋鱼", "好的"))
    desk.clock.advance(seconds=60)
    found = await desk.search.search(ME, "西湖醋鱼")
    assert [hit.path for hit in found] == [path]
    assert "想吃西湖醋鱼" in found[0].snippet
    assert await desk.paths("第3句") == [path]


async def test_a_rewritten_session_is_indexed_anew(desk: Desk) -> None:
    path = "users/1234/sessions/s/messages.jsonl"
    desk.say(path, *[(f"alpha{i} {'x' * 50}", "好") for i in range(20)])
    assert await desk.paths("alpha0") == [path]
    desk.files.write(PurePosixPath(path), (json.dumps({"role": "user", "content": "beta " * 300}) + "\n").encode())
    desk.clock.advance(seconds=60)
    assert await desk.paths("alpha0") == []
    assert await desk.paths("beta") == [path]


async def test_a_deleted_file_is_no_longer_found(desk: Desk) -> None:
    desk.put("users/1234/knowledge/d/e.md", "hotel")
    assert await desk.paths("hotel")
    desk.files.delete(PurePosixPath("users/1234/knowledge/d/e.md"))
    desk.clock.advance(seconds=60)
    assert await desk.paths("hotel") == []


async def test_a_deleted_domain_is_no_longer_found(desk: Desk) -> None:
    desk.put("users/1234/knowledge/d/e.md", "hotel")
    assert await desk.paths("hotel")
    desk.files.delete_tree(PurePosixPath("users/1234/knowledge/d"))
    desk.clock.advance(seconds=60)
    assert await desk.paths("hotel") == []


async def test_a_file_written_in_place_is_found_when_a_writer_says_so(desk: Desk) -> None:
    desk.put("users/1234/knowledge/d/e.md", "alpha")
    assert await desk.paths("alpha")
    path = desk.files.path(PurePosixPath("users/1234/knowledge/d/e.md"))
    path.write_text("gamma")
    desk.search.changed("users/1234/knowledge/d/e.md")
    assert await desk.paths("gamma") == ["users/1234/knowledge/d/e.md"]


async def test_a_file_written_in_place_by_a_stranger_is_found_after_a_while(desk: Desk) -> None:
    desk.put("users/1234/knowledge/d/e.md", "alpha")
    os.utime(desk.files.path(PurePosixPath("users/1234/knowledge/d")), (1, 1))
    assert await desk.paths("alpha")
    desk.files.path(PurePosixPath("users/1234/knowledge/d/e.md")).write_text("gamma")
    desk.clock.advance(seconds=400)
    assert await desk.paths("gamma") == ["users/1234/knowledge/d/e.md"]


async def test_two_searches_on_one_root_see_each_others_files(desk: Desk) -> None:
    other = Search(desk.files, clock=desk.clock)
    assert await desk.paths("hotel") == []
    desk.put("users/1234/knowledge/d/e.md", "hotel")
    desk.clock.advance(seconds=60)
    assert len(await other.search(ME, "hotel")) == 1
    assert len(await desk.paths("hotel")) == 1
    await other.close()


@pytest.mark.parametrize("harm", ["garbage", "deleted", "truncated"])
async def test_a_harmed_index_is_made_again(desk: Desk, harm: str) -> None:
    desk.put("users/1234/knowledge/d/e.md", "hotel")
    assert await desk.paths("hotel")
    await desk.search.close()
    index = desk.files.path(INDEX_FILE)
    if harm == "garbage":
        index.write_bytes(b"\x00garbage" * 5000)
    elif harm == "deleted":
        index.unlink()
    else:
        index.write_bytes(index.read_bytes()[:5000])
    assert await desk.paths("hotel") == ["users/1234/knowledge/d/e.md"]


async def test_an_index_deleted_while_open_is_made_again(desk: Desk) -> None:
    desk.put("users/1234/knowledge/d/e.md", "hotel")
    assert await desk.paths("hotel")
    desk.files.path(INDEX_FILE).unlink()
    assert await desk.paths("hotel") == ["users/1234/knowledge/d/e.md"]
    assert desk.files.path(INDEX_FILE).exists()


async def test_the_index_is_private(desk: Desk) -> None:
    await desk.paths("hotel")
    assert desk.files.path(INDEX_FILE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (
            "session",
            {"sessions/s/summary.md", "sessions/s/messages.jsonl", "sessions/s/archive/messages_20261130.jsonl"},
        ),
        ("profile", {"profile.md", "soul.md"}),
        ("workflow", {"workflows/w.md"}),
        ("knowledge", {"knowledge/d/e.md"}),
        ("archive", {"sessions/s/archive/messages_20261130.jsonl"}),
    ],
)
async def test_a_scope_narrows_what_is_searched(desk: Desk, scope: str, expected: set[str]) -> None:
    for path in ("soul.md", "profile.md", "workflows/w.md", "knowledge/d/e.md", "sessions/s/summary.md"):
        desk.put(f"users/1234/{path}", "hotel")
    for name in ("messages.jsonl", "archive/messages_20261130.jsonl"):
        desk.say(f"users/1234/sessions/s/{name}", ("hotel", "ok"))
    assert {p.removeprefix("users/1234/") for p in await desk.paths("hotel", scope=scope)} == expected
    assert len(await desk.paths("hotel", scope="all")) == 7


async def test_injection_leaves_out_the_running_session_and_keeps_its_archive(desk: Desk) -> None:
    for session in ("now", "old"):
        desk.say(f"users/1234/sessions/{session}/messages.jsonl", ("hotel", "ok"))
    desk.say("users/1234/sessions/now/archive/messages_20261101.jsonl", ("hotel", "ok"))
    desk.put("users/1234/sessions/now/summary.md", "hotel")
    desk.put("users/1234/profile.md", "hotel")
    found = await desk.search.retrieve(layout.make_scope("1234", None, "now"), "hotel")
    assert {hit.path for hit in found} == {
        "users/1234/sessions/old/messages.jsonl",
        "users/1234/sessions/now/archive/messages_20261101.jsonl",
    }


async def test_phrases_must_all_occur(desk: Desk) -> None:
    desk.put("users/1234/knowledge/d/a.md", "New York hotel 经济型酒店")
    desk.put("users/1234/knowledge/d/b.md", "York new hotel 酒店经济型")
    assert await desk.paths('"new york"') == ["users/1234/knowledge/d/a.md"]
    assert await desk.paths("hotel", exact_phrases=["经济型酒店"]) == ["users/1234/knowledge/d/a.md"]
    assert await desk.paths('"new york" "酒店经济"') == []
    assert await desk.paths("", exact_phrases=["经济型酒店"]) == ["users/1234/knowledge/d/a.md"]


async def test_a_phrase_of_signs_alone_is_compared_with_the_text(desk: Desk) -> None:
    desk.put("users/1234/knowledge/d/a.md", "hotel !!!")
    desk.put("users/1234/knowledge/d/b.md", "hotel")
    assert await desk.paths('hotel "!!!"') == ["users/1234/knowledge/d/a.md"]


async def test_since_takes_aware_and_naive_moments(desk: Desk) -> None:
    path = "users/1234/sessions/s/messages.jsonl"
    desk.say(path, ("hotel", "ok"), ts="2026-01-01T00:00:00Z")
    desk.put("users/1234/knowledge/d/e.md", "hotel")
    now = datetime.now(UTC)
    assert await desk.paths("hotel", since=now - timedelta(hours=1)) == ["users/1234/knowledge/d/e.md"]
    naive = (now - timedelta(hours=1)).astimezone().replace(tzinfo=None)
    assert await desk.paths("hotel", since=naive) == ["users/1234/knowledge/d/e.md"]
    assert await desk.paths("hotel", since=now + timedelta(hours=1)) == []


async def test_a_minimum_score_leaves_the_weak_out(desk: Desk) -> None:
    desk.put("users/1234/knowledge/d/e.md", "hotel")
    assert await desk.paths("hotel", min_score=0.5)
    assert await desk.paths("hotel", min_score=1000.0) == []


async def test_wrong_arguments_are_refused(desk: Desk) -> None:
    with pytest.raises(InvalidInput):
        SearchOptions(scope="bogus")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        RetrieveOptions(inject_mode="bogus")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        await desk.search.search(ME, "x", -1)
    with pytest.raises(InvalidInput):
        await desk.search.search(ME, "x", True)
    assert await desk.search.search(ME, "x", 0) == []


async def test_hits_carry_what_the_protocol_promises(desk: Desk) -> None:
    desk.put("users/1234/knowledge/geo/hangzhou.md", "# 杭州\n西湖")
    hit = (await desk.search.search(ME, "西湖"))[0]
    assert (hit.path, hit.uri, hit.type) == (
        "users/1234/knowledge/geo/hangzhou.md",
        "amos://users/1234/knowledge/geo/hangzhou",
        "knowledge",
    )
    assert hit.score > 0
    assert hit.keywords_matched == ["西湖"]


async def test_three_ways_to_inject(desk: Desk) -> None:
    desk.put("users/1234/knowledge/geo/hangzhou.md", "西湖")
    found = await desk.search.search(ME, "西湖")
    path = "users/1234/knowledge/geo/hangzhou.md"
    assert render(found, "full") == f"[knowledge] {path}  (amos://users/1234/knowledge/geo/hangzhou)\n西湖"
    assert render(found, "preview") == "[相关记忆] 西湖"
    assert render(found, "reference") == f"[参考文件] {path}"
    assert render([], "full") is None


async def test_assets_are_found_beside_memory_and_deprecated_ones_only_when_asked_for(desk: Desk) -> None:
    desk.put("users/1234/knowledge/d/e.md", "天气")
    desk.put("users/1234/assets/tools/weather/definition.md", "查天气")
    desk.put("shared/assets/tools/old/definition.md", "旧天气")
    desk.files.write_json(PurePosixPath("shared/assets/tools/old/metadata.json"), {"status": "deprecated"})
    found = await desk.search.search_all(ME, "天气", 10)
    assert {(hit.source, hit.type) for hit in found} == {("memory", "knowledge"), ("asset", "tool")}
    assert "users/1234/assets/tools/weather/definition.md" not in await desk.paths("天气")
    names = [hit.uri for hit in await desk.search.search_assets(ME, "天气", "tool", include_deprecated=True)]
    assert sorted(names) == ["amos://shared/assets/tool/old", "amos://users/1234/assets/tool/weather"]


async def test_tags_are_searched(tmp_path: Path) -> None:
    files = FileRoot.open(tmp_path / "root", sync=False)
    files.write_text(PurePosixPath("users/1234/knowledge/d/e.md"), "内容")
    tags: dict[str, tuple[str, ...]] = {}
    search = Search(files, tags=lambda path: tags.get(path, ()))
    assert await search.search(ME, "城市") == []
    tags["users/1234/knowledge/d/e.md"] = ("城市",)
    search.changed("users/1234/knowledge/d/e.md")
    assert len(await search.search(ME, "城市")) == 1
    await search.close()


async def test_torn_lines_and_foreign_bytes_cost_only_themselves(desk: Desk) -> None:
    path = PurePosixPath("users/1234/sessions/s/messages.jsonl")
    desk.say(str(path), ("alpha", "ok"))
    target = desk.files.path(path)
    target.write_bytes(target.read_bytes() + b'[1]\n{"role":"user","content":"be\xffta"}\n{"role": "user", "con')
    assert await desk.paths("alpha")
    assert await desk.paths("ok")
    assert await desk.paths("ta") or await desk.paths("be")


async def test_links_are_not_followed(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_text("hotel")
    desk.put("users/1234/knowledge/d/e.md", "none")
    (desk.files.root / "users/1234/knowledge/link").symlink_to(tmp_path / "outside")
    (desk.files.root / "users/1234/knowledge/d/l.md").symlink_to(tmp_path / "outside" / "x.md")
    assert await desk.paths("hotel") == []


async def test_reindex_counts_the_files_of_all_owners(desk: Desk) -> None:
    for path in (
        "shared/soul.md",
        "users/1/profile.md",
        "users/1/agents/g/soul.md",
        "users/1/agents/g/sessions/s/summary.md",
    ):
        desk.put(path, "hotel")
    assert await desk.search.reindex() == 4


async def test_the_common_words_of_a_question_still_find_when_the_rare_ones_bring_too_little(desk: Desk) -> None:
    desk.put("users/1234/knowledge/d/rare.md", "rareword")
    for number in range(5):
        desk.put(f"users/1234/knowledge/d/c{number}.md", "commonword")
    assert len(await desk.paths("rareword commonword")) == 6


async def test_several_exchanges_of_one_archive_are_injected_and_a_search_names_the_file_once(desk: Desk) -> None:
    path = "users/1234/sessions/s/archive/messages_20261101.jsonl"
    desk.say(path, *[(f"hotel 第{number}句", "好") for number in range(200)])
    desk.say("users/1234/sessions/s/archive/messages_20261102.jsonl", ("hotel", "好"))
    assert len(await desk.search.retrieve(ME, "hotel", RetrieveOptions(top_k=5))) == 5
    assert len(await desk.paths("hotel")) == 2
    found = await desk.search.search(ME, "hotel 第77句", 1)
    assert "第77句" in found[0].snippet


@pytest.mark.parametrize(
    "word", ["tmessages", "typemessages", "deprecated", "\ue000typemessages", "AND", "NOT", "NEAR"]
)
async def test_no_word_of_a_question_means_anything_to_the_index(desk: Desk, word: str) -> None:
    desk.say("users/1234/sessions/s/messages.jsonl", ("hotel", "ok"))
    assert await desk.paths(word) == []
    desk.put("users/1234/knowledge/d/e.md", f"a {word} b")
    desk.clock.advance(seconds=60)
    assert await desk.paths(word) == ["users/1234/knowledge/d/e.md"]


async def test_a_search_does_not_wait_for_a_huge_root_to_be_indexed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amrita_plugin_memory.amos.search.upkeep.PATIENCE", 0.0)
    monkeypatch.setattr("amrita_plugin_memory.amos.search.upkeep.BATCH", 3)
    for number in range(20):
        desk.put(f"users/1234/knowledge/d/e{number:02}.md", "hotel")
    assert len(await desk.paths("hotel", top_k=100)) < 20
    while desk.search._upkeep.is_behind:
        await __import__("asyncio").sleep(0)
    assert len(await desk.paths("hotel", top_k=100)) == 20
