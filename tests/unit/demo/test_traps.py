import pytest

from amrita_plugin_memory.demo.traps import CRIPPLING, TRAPS, cause_lines, diagnose, explain_silence, last_lines


@pytest.mark.parametrize(
    ("log", "name"),
    [
        ("RuntimeError: uv is not available, please install it first", "uv"),
        ("/usr/bin/python: No module named ambot_inlinectl", "ambot"),
        ("amrita.x.PyprojectNotFoundError: 未找到 pyproject.toml，无法加载插件", "pyproject"),
        (
            "ERROR: [Errno 98] error while attempting to bind on address ('127.0.0.1', 1): address already in use",
            "port",
        ),
        (
            "click.exceptions.UsageError: 目标数据库未更新到最新迁移. 请通过 `nb orm upgrade` 升级数据库后重试.",
            "migration",
        ),
        ("Can't locate revision identified by 'abc'", "revision"),
        ("Failed to load plugin amrita_plugin_memory: boom", "plugin"),
        ('Failed to import "amrita_plugin_memory"', "plugin"),
        ("[Memory] 记忆插件没有启动：磁盘已满", "plugin-start"),
        ("ModuleNotFoundError: No module named 'chromadb'", "module"),
        ("检测到默认密码，请在 .env 中设置 WEBUI_PASSWORD 后重启 Amrita", "password"),
        ("ZeroDivisionError: float division by zero", "rate"),
        ("FallbackFailed: ('No more preset available!',)", "model"),
        ("[Memory] .env 有误：embedding_proctol: bad", "config"),
    ],
)
def test_each_message_of_the_host_is_recognised_and_told_in_chinese_with_a_way_out(log, name):
    trap = diagnose(f"noise\n{log}\nnoise")
    assert trap is not None
    assert trap.name == name
    assert trap.sentence.endswith("。")
    assert trap.fix.endswith("。")


def test_every_trap_is_covered_above():
    pairs = test_each_message_of_the_host_is_recognised_and_told_in_chinese_with_a_way_out.pytestmark[0].args[1]
    assert {name for _, name in pairs} == {trap.name for trap in TRAPS}


def test_the_cause_wins_over_what_follows_from_it():
    assert diagnose("Plugin already exists: chat!\nuv is not available\naddress already in use").name == "uv"


def test_a_clean_log_shows_no_trap():
    log = "Application startup complete\nLegacy project format found!\nSucceeded to load plugin amrita_plugin_memory"
    assert diagnose(log) is None


def test_only_the_named_traps_are_looked_for():
    assert diagnose("address already in use", CRIPPLING) is None


def test_the_cause_is_cut_out_of_the_log():
    log = (
        "2026-11-30 15:16:29 | INFO | before\n"
        "2026-11-30 15:16:29 | ERROR | \x1b[31m[Memory] 记忆插件没有启动\x1b[0m\n"
        "Traceback (most recent call last):\n\nNameError: x\n"
        "2026-11-30 15:16:30 | INFO | after\n"
    )
    trap = diagnose(log)
    assert cause_lines(log, trap)[0].endswith("记忆插件没有启动")
    assert cause_lines(log, trap)[-1] == "NameError: x"
    assert cause_lines("nothing", trap) == []


def test_the_last_lines_have_no_colours_and_no_blanks():
    assert last_lines("a\n\n\x1b[1mb\x1b[0m\n \nc", 2) == ["b", "c"]


def test_silence_is_explained_from_the_log():
    assert explain_silence("Matcher(type='message') running is cancelled").name == "dropped"
    assert explain_silence("('No more preset available!',)").name == "model"
    assert explain_silence("running complete") is None
