import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.amos import file_root, scope

from amrita_plugin_memory.amos.ground import layout
from amrita_plugin_memory.amos.memory import StableText, sections, versions

U1, U2, G = scope("u1"), scope("u2"), scope("u1", "g")


@pytest.fixture
def files(tmp_path):
    root = file_root(tmp_path)
    for folder in ("users/u1/agents/g", "users/u2/agents", "shared"):
        (tmp_path / folder).mkdir(parents=True)
    return root


@pytest.fixture
def stable(files):
    return StableText(files)


def held(files):
    return [versions.get(files, s) for s in (U1, G, U2)]


def test_the_prefix_is_soul_profile_and_summary_in_this_order(stable):
    stable.write_soul(layout.SHARED, "灵魂\n")
    stable.write_profile("u1", lambda _: "画像")
    stable.write_summary(U1, lambda _: "摘要")
    assert stable.prefix(U1) == "灵魂\n\n画像\n\n[会话摘要]\n摘要"
    assert stable.prefix(scope("u1", None, "s2")) == "灵魂\n\n画像"
    assert stable.prefix(U2) == "灵魂"


def test_the_soul_of_the_agent_comes_before_the_users_before_the_shared(stable):
    for owner, text in (
        (layout.SHARED, "all"),
        (layout.user_dir("u1"), "user"),
        (layout.agent_dir("u1", "g"), "agent"),
    ):
        stable.write_soul(owner, text)
    assert [stable.soul(s) for s in (G, U1, U2)] == ["agent", "user", "all"]
    stable.write_soul(layout.agent_dir("u1", "g"), " \n")
    assert stable.soul(G) == "user"


def test_a_version_moves_when_and_only_when_the_prefix_of_that_scope_changed(files, stable):
    assert held(files) == [1, 1, 1]
    stable.write_soul(layout.SHARED, "all")
    assert held(files) == [2, 2, 2]
    stable.write_soul(layout.SHARED, "all")
    assert held(files) == [2, 2, 2]
    stable.write_soul(layout.agent_dir("u1", "g"), "agent")
    assert held(files) == [2, 3, 2]
    stable.write_soul(layout.user_dir("u1"), "user")
    assert held(files) == [3, 3, 2]
    stable.write_soul(layout.SHARED, "all of us")
    assert held(files) == [3, 3, 3]
    stable.write_profile("u1", lambda _: "p")
    assert held(files) == [4, 4, 3]
    stable.write_profile("u1", lambda _: "p\n")
    assert held(files) == [4, 4, 3]
    stable.write_soul(layout.agent_dir("u1", "g"), "")
    assert held(files) == [4, 5, 3]


def test_summaries_count_by_session(files, stable):
    for session in ("s1", "s2", "s1"):
        stable.write_summary(scope("u2", None, session), lambda _: "same")
    assert versions.get(files, U2) == 3
    stable.write_summary(scope("u1", "g", "s1"), lambda _: "x")
    assert held(files) == [1, 2, 3]


@pytest.mark.parametrize("content", ["7", "[]", "{", "", '{"u1": "x", "u2": true}'])
def test_a_broken_version_file_is_mended_and_not_fatal(files, stable, content):
    (files.root / "cache_version.txt").write_text(content)
    assert held(files) == [1, 1, 1]
    stable.write_profile("u1", lambda _: "p")
    assert json.loads((files.root / "cache_version.txt").read_text()) == {"u1": 2, "u1/g": 2}


def test_bom_and_invisible_signs_do_not_reach_the_prompt(files, stable):
    (files.root / "users/u1/profile.md").write_bytes("\ufeff画\u200b像\r\n\u202e".encode())
    assert stable.prefix(U1) == "画像"


def test_a_stray_folder_under_users_does_not_stop_a_shared_soul(files, stable):
    (files.root / "users" / "a:b").mkdir()
    stable.write_soul(layout.SHARED, "all")
    assert held(files) == [2, 2, 2]


def test_fifty_appends_at_once_keep_fifty(files):
    def append(at):
        StableText(files).write_profile("u1", lambda old: sections.add_to_section(old, "事实", f"- {at}"))

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(append, range(50)))
    text = StableText(files).profile("u1")
    assert sorted(text.split("\n")) == sorted(["## 事实", *(f"- {at}" for at in range(50))])
    assert versions.get(files, U1) == 51
