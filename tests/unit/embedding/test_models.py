"""Which model ``auto`` takes."""

from __future__ import annotations

import random

import pytest

from amrita_plugin_memory.embedding.service.models import ServedModel, embeds, named, pick


@pytest.mark.parametrize(
    "name",
    ["bge-m3", "BAAI/bge-m3", "bge-m3:latest", "nomic-embed-text:v1.5", "mxbai-embed-large", "text-embedding-v4",
     "qwen3-embedding:0.6b", "Qwen/Qwen3-Embedding-8B", "intfloat/multilingual-e5-large", "embedding-3", "all-minilm",
     "snowflake-arctic-embed2", "text-embedding-ada-002", "netease-youdao/bce-embedding-base_v1", "gte-large-zh"],
)  # fmt: skip
def test_well_known_embedding_models_are_known_by_name(name: str) -> None:
    assert embeds(ServedModel(name))


@pytest.mark.parametrize(
    "name", ["llama3:8b", "qwen3:8b", "gpt-5", "deepseek-chat", "BAAI/bge-reranker-v2-m3", "whisper-1", "gemma3:4b"]
)
def test_chat_models_and_rerankers_are_not(name: str) -> None:
    assert not embeds(ServedModel(name))


def test_what_the_server_says_counts_more_than_the_name() -> None:
    assert pick([ServedModel("bge-m3", embeds=False), ServedModel("mine", embeds=True)]) == "mine"


def test_the_pick_does_not_depend_on_the_order_of_the_list() -> None:
    models = [ServedModel(n) for n in ("nomic-embed-text", "mxbai-embed-large", "bge-m3", "llama3", "all-minilm")]
    for seed in range(10):
        random.Random(seed).shuffle(models)
        assert pick(models) == "bge-m3"


def test_the_recorded_model_comes_first_tag_or_no_tag() -> None:
    models = [ServedModel("bge-m3:latest"), ServedModel("nomic-embed-text:latest")]
    assert pick(models, prefer="nomic-embed-text") == "nomic-embed-text:latest"


def test_nothing_is_picked_from_chat_models_and_the_sentence_names_a_few() -> None:
    models = [ServedModel(f"llama{i}") for i in range(30)]
    assert pick(models) is None
    assert named(models).endswith("等 30 个")
    assert named([]) == "没有任何模型"
