import tomllib
from pathlib import Path

import pytest

from amrita_plugin_memory.kernel.errors import ConfigInvalid
from amrita_plugin_memory.settings import EnvSettings, FileSettings


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    for name in EnvSettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("EMBEDDING_PROTOCOL", raising=False)


SEED_ENV = {
    "vector_db_type": "local", "vector_db_server": "127.0.0.1", "vector_db_port": 8000, "vector_db_server_ssl": False,
    "vector_db_remote_headers": {}, "vector_db_tenant": "default", "vector_db_database": "default",
    "embedding_model_url": "http://127.0.0.1:11434", "embedding_model_name": "auto", "embed_check_on_startup": True,
    "embed_mismatch_policy": "ask", "reembed_batch_size": 64, "reembed_backup_keep": 3,
}  # fmt: skip
SEED_FILE = {
    "short_term_expiry_days": 7,
    "long_term_expiry_days": 90,
    "per_session_memory_limit": 50,
    "memo_max_chars": 1000,
}
SEED_SUBCONSCIOUS = {
    "enabled": False, "target_user_id": "", "allowed_tools": [], "max_iterations": 10, "loop_detect_threshold": 3,
    "rethink_base_delay_minutes": 30, "rethink_penalty_multiplier": 1.5, "rethink_max_delay_minutes": 1440,
    "prompt_file": "prompt/subconscious_main.md.jinja2", "prompt_send_file": "prompt/subconscious_send.md.jinja2",
    "prompt_knowledge_file": "prompt/knowledge_guide.md.jinja2", "prompt_profile_file": "prompt/profile_guide.md.jinja2",
    "enable_memory_compress": True, "allow_send_to_user": False, "memory_warn_threshold": 100, "max_abstracts": 5,
    "knowledge_max_chars": 10000, "knowledge_collection_name": "amrita_global_knowledge", "enable_knowledge": True,
}  # fmt: skip


def test_defaults_are_those_of_the_specification():
    env, file = EnvSettings.read(), FileSettings()
    assert {k: getattr(env, k) for k in SEED_ENV} == SEED_ENV
    assert {k: getattr(file, k) for k in SEED_FILE} == SEED_FILE
    assert {k: getattr(file.subconscious, k) for k in SEED_SUBCONSCIOUS} == SEED_SUBCONSCIOUS
    assert env.embedding_proctol == "auto"


def test_the_file_that_an_owner_gets_says_the_defaults_of_every_field():
    shipped = Path(__file__).parents[3] / "config" / "config.toml"
    assert FileSettings.read(shipped) == FileSettings()
    told = tomllib.loads(shipped.read_text("utf-8"))
    assert told == FileSettings().model_dump()


@pytest.mark.parametrize("name", ["EMBEDDING_PROCTOL", "EMBEDDING_PROTOCOL", "embedding_protocol"])
def test_the_protocol_is_read_under_both_spellings(monkeypatch, name):
    monkeypatch.setenv(name, "OpenAI")
    assert EnvSettings.read().embedding_proctol == "openai"


def test_a_dotenv_file_is_read_and_the_environment_wins(tmp_path, monkeypatch):
    dotenv = tmp_path / ".env"
    dotenv.write_text(
        "\n".join(
            [
                "VECTOR_DB_PORT=9000",
                "EMBEDDING_MODEL_NAME=bge-m3",
                'VECTOR_DB_REMOTE_HEADERS={"X-Token":"s3cret"}',
                "OTHER=1",
            ]
        )
    )
    monkeypatch.setenv("VECTOR_DB_PORT", "9001")
    env = EnvSettings.read(dotenv, tmp_path / "missing")
    assert (env.vector_db_port, env.embedding_model_name) == (9001, "bge-m3")
    assert env.vector_db_remote_headers["X-Token"].get_secret_value() == "s3cret"
    assert env.service_is_configured


def test_secrets_do_not_show_in_representations(monkeypatch):
    monkeypatch.setenv("EMBEDDING_MODEL_API_KEY", "sk-verysecret")
    env = EnvSettings.read()
    assert "verysecret" not in repr(env) + str(env.model_dump()) + env.model_dump_json()


def test_a_bad_value_is_named_without_being_shown(monkeypatch):
    monkeypatch.setenv("VECTOR_DB_PORT", "sk-secret-in-the-wrong-place")
    with pytest.raises(ConfigInvalid, match="VECTOR_DB_PORT: 应为整数") as caught:
        EnvSettings.read()
    assert "sk-secret" not in str(caught.value)


def test_headers_that_are_no_json_are_named_without_being_shown(monkeypatch):
    monkeypatch.setenv("VECTOR_DB_REMOTE_HEADERS", '{"X-Token": sk-secret')
    with pytest.raises(ConfigInvalid, match="VECTOR_DB_REMOTE_HEADERS: 不是有效的 JSON") as caught:
        EnvSettings.read()
    assert "sk-secret" not in str(caught.value)


def test_a_file_of_another_encoding_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "config.toml"
    path.write_bytes("# 设置\n".encode("gbk"))
    with pytest.raises(ConfigInvalid, match="请另存为 UTF-8"):
        FileSettings.read(path)


def test_the_file_of_the_published_plugin_opens(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(
        "per_session_memory_limit = 100\n[decay]\nenabled = true\n[subconscious]\nenabled = true\ntarget_user_id = 10001\n"
    )
    file = FileSettings.read(path)
    assert (file.per_session_memory_limit, file.subconscious.targets) == (100, ("10001",))
    assert file.model_dump()["decay"] == {"enabled": True}


def test_several_targets_may_be_written_as_a_list_or_with_commas():
    read = FileSettings.model_validate
    assert read({"subconscious": {"target_user_id": [1, "2", 1]}}).subconscious.targets == ("1", "2")
    assert read({"subconscious": {"target_user_id": "1, 2，3"}}).subconscious.targets == ("1", "2", "3")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("memo_max_chars = 5", "memo_max_chars"),
        ("= broken", "TOML"),
        ("[subconscious]\nmax_iterations=99", "max_iterations"),
        ("subconscious = 3", "subconscious: 应为键值对象"),
        ("recall = 3", "recall: 应为键值对象"),
        ("a = [", "请检查文件的末尾"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, text, why):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigInvalid, match=why):
        FileSettings.read(path)
