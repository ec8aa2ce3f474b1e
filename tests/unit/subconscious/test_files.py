import stat
from pathlib import Path

import pytest
from support.cycles import ME, build

from amrita_plugin_memory.kernel.errors import ConfigInvalid, InvalidName, NotFound
from amrita_plugin_memory.knowledge import MemoryEntryFiles
from amrita_plugin_memory.subconscious.bench import Effect
from amrita_plugin_memory.subconscious.journal import Journal, RunRecord, Step
from amrita_plugin_memory.subconscious.prompts import DEFAULTS, Prompts
from amrita_plugin_memory.subconscious.takeover import take_over


def record(number):
    return RunRecord(
        f"run{number:03}",
        ME,
        f"2026-01-01T00:{number:02}:00",
        steps=(Step("t", {"a": 1}, "success", 3),),
        effects=(Effect("fact", "x", None, {"content": "y"}),),
    )


def test_records_read_back_newest_first_private_and_bounded(tmp_path):
    journal = Journal(tmp_path, keep=3)
    for number in range(5):
        journal.write(record(number))
    assert [one.id for one in journal.list(ME)] == ["run004", "run003", "run002"]
    assert journal.read("run003") == record(3)
    path = next(tmp_path.glob("*/*.json"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_torn_record_is_left_out_and_a_strange_id_is_refused(tmp_path):
    journal = Journal(tmp_path)
    journal.write(record(1))
    (tmp_path / ME / "run009.json").write_text('{"id": "run009"')
    assert [one.id for one in journal.list()] == ["run001"]
    with pytest.raises(NotFound):
        journal.read("run002")
    with pytest.raises(InvalidName):
        journal.read("../../etc/passwd")


def test_missing_templates_are_written_and_an_owners_text_stays(tmp_path):
    prompts = Prompts(tmp_path)
    assert len(prompts.ensure()) == len(DEFAULTS)
    mine = tmp_path / "prompt" / "subconscious_main.md.jinja2"
    mine.write_text("我的 {{ target_user_id }}", "utf-8")
    assert prompts.ensure() == []
    assert prompts.render("prompt/subconscious_main.md.jinja2", {"target_user_id": "1"}) == "我的 1"


VARIABLES = {
    "character_prompt": "人设X", "last_run": "昨天", "last_abstracts": ["做过Y"], "current_time": "2026-11-30T12:00",
    "target_user_id": "10001", "total_runs": 7, "intent": "问候Z", "memory_context": "记忆W",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("subconscious_main", ["人设X", "昨天", "做过Y", "2026-11-30T12:00", "10001", "7"]),
        ("subconscious_send", ["人设X", "问候Z", "记忆W", "2026-11-30T12:00"]),
        ("knowledge_guide", ["2026-11-30T12:00", "10001"]),
        ("profile_guide", ["2026-11-30T12:00", "10001"]),
    ],
)
def test_the_default_templates_use_the_variables_of_the_specification(tmp_path, name, shown):
    text = Prompts(tmp_path).render(f"prompt/{name}.md.jinja2", VARIABLES)
    assert [one for one in shown if one not in text] == []


@pytest.mark.parametrize("text", ["{{ ''.__class__.__mro__ }}", "{% include '/etc/passwd' %}", "{{ x"])
def test_a_template_that_reaches_out_or_is_broken_is_refused_in_one_sentence(tmp_path, text):
    (tmp_path / "prompt").mkdir()
    (tmp_path / "prompt" / "subconscious_main.md.jinja2").write_text(text)
    with pytest.raises(ConfigInvalid, match="subconscious_main"):
        Prompts(tmp_path).render("prompt/subconscious_main.md.jinja2", {})


def test_a_template_outside_the_configuration_directory_is_refused(tmp_path):
    with pytest.raises(ConfigInvalid, match="配置目录"):
        Prompts(tmp_path / "config").render("../secret.md.jinja2", {})


async def test_old_files_are_taken_over_once_and_stay(tmp_path: Path):
    world = await build(tmp_path / "w", [])
    old = tmp_path / "data"
    (old / "knowledge").mkdir(parents=True)
    (old / "user_profile.md").write_text("喜欢乌龙茶\n---\n- 养猫", "utf-8")
    (old / "knowledge" / "KNOWLEDGE_ab12cd34.md").write_text("# 甲\n摘要\n---\n正文\n", "utf-8")
    files = MemoryEntryFiles()
    brought = await take_over(old, account=ME, profiles=world.profiles, files=files)
    assert brought == ["user_profile.md", "knowledge/KNOWLEDGE_ab12cd34.md"]
    assert await world.profiles.read(ME) == "喜欢乌龙茶\n---\n- 养猫"
    assert files.texts["ab12cd34"].startswith("# 甲")
    del files.texts["ab12cd34"]
    assert await take_over(old, account=ME, profiles=world.profiles, files=files) == []
    assert files.texts == {}
    assert (old / "user_profile.md").exists()
