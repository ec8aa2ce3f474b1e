from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from amrita_plugin_memory.embedding import FakeEmbedder, VectorSpace
from amrita_plugin_memory.retrieval import ALL, Leaning, Recall
from amrita_plugin_memory.vectordb.ports import Partition, Row

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
FACTS = ("我对花生过敏", "我喜欢喝乌龙茶", "我养了一只叫豆包的橘猫", "我在杭州做后端开发", "我每天六点起床")


class Directions:
    """An embedder whose texts point where the test says, in a model of the test's choice."""

    def __init__(self, model, **cosines):
        self.model, self.cosines = model, cosines

    async def space(self):
        return VectorSpace("embedded", self.model, "", resolved_model=self.model, dimension=3)

    async def embed(self, texts, *, purpose, deadline=None):
        return np.array([[1.0, 0.0, 0.0]] * len(texts), dtype=np.float32)


def vector(cosine):
    return np.array([cosine, np.sqrt(1 - cosine**2), 0.0], dtype=np.float32)


def rows(*texts, days=None, importance=None):
    return tuple(
        Row(
            str(i),
            text,
            {
                "tags": "",
                "created_at": (NOW - timedelta(days=days[i] if days else 400)).isoformat(),
                "importance": importance[i] if importance else "medium",
            },
        )
        for i, text in enumerate(texts)
    )


async def stored(embedder, *texts, **options):
    matrix = await embedder.embed(texts, purpose="passage")
    return Partition("me", rows(*texts, **options), matrix)


def e5(cosines, *texts, **options):
    matrix = np.stack([vector(cosine) for cosine in cosines])
    return Recall(Directions("multilingual-e5-small")), Partition("me", rows(*texts, **options), matrix)


async def texts_of(recall, question, partition, **options):
    answer = await recall.ask(question, partition, **{"top_k": 5, **options})
    return [hit.row.document for hit in answer.hits]


async def test_by_words_alone_only_rows_with_an_asked_word_are_given():
    embedder = FakeEmbedder(meaningful=False)
    answer = await Recall(embedder).ask("花生", await stored(embedder, *FACTS), top_k=5)
    assert [hit.row.document for hit in answer.hits] == ["我对花生过敏"]
    assert answer.mode == "words"
    assert answer.hits[0].relevance > 0.75


async def test_with_the_embedding_service_down_the_words_still_answer_and_say_so():
    embedder = FakeEmbedder()
    partition = await stored(embedder, *FACTS)
    embedder.down = True
    answer = await Recall(embedder).ask("花生", partition, top_k=5)
    assert [hit.row.document for hit in answer.hits] == ["我对花生过敏"]
    assert "字词" in answer.note


async def test_vectors_of_another_dimension_are_never_compared():
    partition = await stored(FakeEmbedder(dimension=32), *FACTS)
    answer = await Recall(FakeEmbedder(dimension=64)).ask("花生", partition, top_k=5)
    assert answer.mode == "words"


async def test_an_exact_word_shows_three_dots_and_a_stranger_none():
    recall, partition = e5([0.83, 0.84, 0.80], *FACTS[:3])
    answer = await recall.ask("花生", partition, top_k=5, floor=ALL)
    shown = {hit.row.document: hit.relevance for hit in answer.hits}
    assert shown["我对花生过敏"] >= 0.75
    assert shown["我养了一只叫豆包的橘猫"] == 0.0


async def test_beside_a_certain_answer_strangers_are_left_out():
    recall, partition = e5([0.83, 0.83, 0.80], *FACTS[:3])
    assert await texts_of(recall, "花生", partition) == ["我对花生过敏"]


async def test_when_nobody_has_the_answer_nothing_is_returned_unless_all_are_wanted():
    recall, partition = e5([0.80, 0.79, 0.81], *FACTS[:3])
    assert await texts_of(recall, "量子物理", partition) == []
    assert len(await texts_of(recall, "量子物理", partition, floor=ALL)) == 3


async def test_a_floor_can_be_raised():
    recall, partition = e5([0.90, 0.79, 0.81], *FACTS[:3])
    assert (await texts_of(recall, "坚果", partition))[0] == FACTS[0]
    assert await texts_of(recall, "坚果", partition, floor=0.9) == []


async def test_relevance_falls_with_the_rank():
    embedder = FakeEmbedder()
    answer = await Recall(embedder).ask("我喜欢喝什么茶", await stored(embedder, *FACTS), top_k=5, floor=ALL)
    relevance = [hit.relevance for hit in answer.hits]
    assert relevance == sorted(relevance, reverse=True)
    assert len(relevance) == 5


async def test_what_is_said_twice_is_given_once_but_a_contradiction_stays():
    texts = (
        "我喜欢喝乌龙茶",
        "我喜欢喝乌龙茶。",
        "我喜欢喝乌龙茶哦",
        "我不喜欢喝乌龙茶",
        "我喝了5杯乌龙茶",
        "我喝了6杯乌龙茶",
    )
    embedder = FakeEmbedder()
    found = await texts_of(Recall(embedder), "乌龙茶", await stored(embedder, *texts), top_k=10)
    assert sorted(found) == sorted([texts[0], *texts[3:]])


async def test_the_place_of_a_near_duplicate_goes_to_the_next_row():
    embedder = FakeEmbedder()
    partition = await stored(embedder, "我喜欢喝乌龙茶", "我喜欢喝乌龙茶！", "我昨天喝了茶")
    assert len(await texts_of(Recall(embedder), "喝茶", partition, top_k=2)) == 2


async def test_a_row_whose_vector_lacks_is_still_found_by_its_words():
    recall, partition = e5([0.84, 0.85, 0.83], *FACTS[:3])
    matrix = partition.matrix.copy()
    matrix[0] = 0.0
    assert (await texts_of(recall, "花生", Partition("me", partition.rows, matrix)))[0] == FACTS[0]


async def test_stored_vectors_need_not_be_of_unit_length():
    recall, partition = e5([0.95, 0.80, 0.80], *FACTS[:3])
    long = Partition("me", partition.rows, partition.matrix * np.array([[0.01], [50], [9]], dtype=np.float32))
    one, other = [(await recall.ask("坚果", part, top_k=1)).hits[0] for part in (partition, long)]
    assert one.row == other.row
    assert one.score == pytest.approx(other.score, abs=1e-4)


async def test_a_day_in_the_question_prefers_what_was_stored_then_or_speaks_of_it():
    recall, partition = e5(
        [0.85, 0.86, 0.86, 0.85],
        "和小林去爬山",
        "和老周去爬山",
        "去年中秋和阿青去爬山",
        "和大熊去爬山",
        days=[6, 300, 200, 100],
    )
    assert (await texts_of(recall, "上周和谁去爬山", partition, now=NOW))[0] == "和小林去爬山"
    assert (await texts_of(recall, "去年中秋和谁去爬山", partition, now=NOW))[0] == "去年中秋和阿青去爬山"
    assert (await texts_of(recall, "2025年10月6日和谁去爬山", partition, now=NOW))[0] == "去年中秋和阿青去爬山"


async def test_a_relative_day_in_a_text_is_read_from_when_it_was_stored():
    recall, partition = e5([0.86, 0.86], "我昨天去了动物园", "我昨天去了植物园", days=[40, 11])
    assert (await texts_of(recall, "11月18日去了哪里", partition, now=NOW))[0] == "我昨天去了植物园"
    assert (await texts_of(recall, "10月20日去了哪里", partition, now=NOW))[0] == "我昨天去了动物园"


async def test_by_words_alone_a_day_finds_what_was_stored_then():
    recall, partition = e5([0.8, 0.8], "爬了香山", "吃了火锅", days=[5, 90])
    assert await texts_of(recall, "last week", partition, now=NOW, words_only="-") == ["爬了香山"]


async def test_an_old_exact_match_is_never_hidden_by_days_recency_or_importance():
    others = [f"花生的第{i}件小事" for i in range(9)]
    recall, partition = e5(
        [0.88, *[0.88] * 9], "花生过敏", *others, days=[900, *[2] * 9], importance=["low", *["high"] * 9]
    )
    leaning = Leaning(recency=1.0, importance=1.0)
    plain = await texts_of(recall, "花生过敏", partition, top_k=3)
    assert plain[0] == "花生过敏"
    for options in (
        {"now": NOW, "leaning": leaning},
        {"now": NOW},
        {"now": NOW, "leaning": leaning, "words_only": "-"},
    ):
        assert "花生过敏" in await texts_of(recall, "上周花生过敏", partition, top_k=3, **options)


async def test_recency_and_importance_only_break_near_ties_and_only_when_asked():
    recall, partition = e5([0.86, 0.86], "我住在北京", "我住在上海", days=[800, 3], importance=["high", "low"])
    assert (await texts_of(recall, "我住在哪", partition, now=NOW))[0] == "我住在北京"
    newer = Leaning(recency=0.05)
    assert (await texts_of(recall, "我住在哪", partition, now=NOW, leaning=newer))[0] == "我住在上海"
    graver = Leaning(recency=0.05, importance=0.1)
    assert (await texts_of(recall, "我住在哪", partition, now=NOW, leaning=graver))[0] == "我住在北京"


async def test_only_rows_that_are_wanted_are_given():
    embedder = FakeEmbedder()
    partition = await stored(embedder, *FACTS)
    found = await texts_of(Recall(embedder), "花生", partition, keep=lambda row: row.id != "0", floor=ALL)
    assert "我对花生过敏" not in found
    assert len(found) == 4


async def test_a_changed_partition_is_read_anew_and_an_equal_one_is_not():
    embedder = FakeEmbedder()
    recall, partition = Recall(embedder), await stored(embedder, *FACTS)
    await recall.ask("花生", partition, top_k=1)
    held = recall._held["me"]
    await recall.ask("花生", Partition("me", partition.rows[:1] + partition.rows[1:], partition.matrix.copy()), top_k=1)
    assert recall._held["me"] is held
    changed = await stored(embedder, *FACTS[1:], "我对芒果过敏")
    assert await texts_of(recall, "花生芒果", changed, top_k=1) == ["我对芒果过敏"]


@pytest.mark.parametrize("count", [1, 2, 7, 70, 1_100])
async def test_partitions_of_every_size_answer_with_an_unknown_model(count):
    embedder = FakeEmbedder()
    partition = await stored(embedder, *(f"第{i}件琐事" for i in range(count - 1)), "我对花生过敏")
    assert (await texts_of(Recall(embedder), "对花生过敏", partition, now=NOW))[0] == "我对花生过敏"
    assert (await texts_of(Recall(embedder), "上个月的花生", partition, now=NOW))[0] == "我对花生过敏"


async def test_an_empty_partition_answers_nothing():
    recall = Recall(FakeEmbedder())
    assert (await recall.ask("花生", Partition("me", (), np.zeros((0, 64), np.float32)), top_k=5)).hits == ()
