import pytest

from amrita_plugin_memory.embedding import FakeEmbedder
from amrita_plugin_memory.embedding.ports import VectorSpace
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import EmbeddingUnavailable, SpaceMismatch
from amrita_plugin_memory.retrieval.fingerprint import (
    DIMENSION,
    PROBE,
    PROBE_TEXT,
    REBUILDING,
    identity,
    match,
    recorded_probe,
    stamp,
)
from amrita_plugin_memory.retrieval.guard import RECHECK, SpaceGuard
from amrita_plugin_memory.vectordb import MemoryStore, Row


async def filled(embedder, *texts, claim=True):
    """A collection with rows of this embedder, marked by it or not."""
    collection = await MemoryStore().open("facts")
    if claim:
        await SpaceGuard(embedder).claim(collection)
    if texts:
        vectors = await embedder.embed(texts, purpose="passage")
        await collection.add([Row(f"r{i}", t, {"user_id": "u"}, vectors[i]) for i, t in enumerate(texts)])
    return collection


class Renamed(FakeEmbedder):
    """The same vectors under another name and address."""

    async def space(self):
        return VectorSpace("ollama-embed", "another-name", "http://elsewhere:1", dimension=self.dimension)


class Swapped(FakeEmbedder):
    """Another model's vectors under the old name."""

    async def space(self):
        return VectorSpace(protocol="fake", model="fake", base_url="", resolved_model="fake", dimension=self.dimension)


async def test_an_empty_collection_is_stamped_with_names_dimension_and_probe():
    collection = await filled(FakeEmbedder())
    metadata = await collection.metadata()
    assert metadata[DIMENSION] == 64
    assert recorded_probe(metadata).shape == (64,)
    assert await SpaceGuard(FakeEmbedder()).verdict(collection) == "same"


async def test_a_model_swapped_behind_its_name_is_noticed_by_the_probe():
    collection = await filled(FakeEmbedder(), "我对花生过敏")
    guard = SpaceGuard(Swapped(model="something else"))
    assert await guard.verdict(collection) == "swapped"
    assert "换过" in await guard.objection(collection)
    with pytest.raises(SpaceMismatch):
        await guard.claim(collection)


async def test_a_model_swapped_while_the_bot_runs_is_noticed_when_the_probe_is_due_again():
    clock, embedder = ManualClock(), Swapped(model="fake")
    collection = await filled(embedder, "我对花生过敏")
    guard = SpaceGuard(embedder, clock=clock)
    assert await guard.verdict(collection) == "same"
    embedder.model = "something else"
    assert await guard.verdict(collection) == "same"
    clock.advance(seconds=RECHECK)
    assert await guard.verdict(collection) == "swapped"


async def test_the_probe_is_embedded_once_and_not_at_every_call():
    embedder = FakeEmbedder()
    collection = await filled(embedder, "我对花生过敏")
    guard, before = SpaceGuard(embedder), len(embedder.calls)
    for _ in range(5):
        await guard.objection(collection)
    assert [call.texts for call in embedder.calls[before:]] == [(PROBE_TEXT,)]


async def test_the_same_model_under_another_name_and_address_needs_no_rebuild():
    collection = await filled(FakeEmbedder(), "我对花生过敏")
    assert await SpaceGuard(Renamed()).verdict(collection) == "same"
    assert await SpaceGuard(Renamed(model="really another")).verdict(collection) == "different"


async def test_another_dimension_is_another_space_and_asks_no_vector():
    collection = await filled(FakeEmbedder(), "我对花生过敏")
    other = FakeEmbedder(dimension=32)
    assert await SpaceGuard(other).verdict(collection) == "different"
    assert other.calls == []


async def test_an_empty_collection_of_another_model_may_be_claimed():
    collection = await filled(FakeEmbedder(model="old"))
    guard = SpaceGuard(FakeEmbedder(model="new"))
    assert await guard.verdict(collection) == "empty"
    await guard.claim(collection)
    assert await guard.verdict(collection) == "same"


async def test_a_service_that_is_down_is_no_objection_and_no_claim():
    collection = await filled(FakeEmbedder(), "我对花生过敏")
    guard = SpaceGuard(FakeEmbedder(down=True))
    assert await guard.objection(collection) == ""
    with pytest.raises(EmbeddingUnavailable):
        await guard.claim(collection)


async def test_rows_without_any_mark_are_not_compared_until_they_were_told_to_be_ours():
    collection = await filled(FakeEmbedder(), "我对花生过敏", "住在上海", claim=False)
    guard = SpaceGuard(FakeEmbedder())
    assert await guard.objection(collection) != ""
    assert await guard.adopt(collection)
    assert await guard.objection(collection) == ""


async def test_rows_of_another_model_are_not_adopted_and_not_compared_from_then_on():
    collection = await filled(FakeEmbedder(model="old"), "我对花生过敏", claim=False)
    await collection.annotate({"embed_fingerprint": (await FakeEmbedder().space()).legacy_fingerprint})
    guard = SpaceGuard(FakeEmbedder())
    assert await guard.objection(collection) == ""
    assert not await guard.adopt(collection)
    assert await guard.objection(collection) != ""


async def test_one_row_of_another_model_at_the_end_is_enough_not_to_adopt():
    collection = await filled(FakeEmbedder(), *(f"第 {i} 件事" for i in range(20)), claim=False)
    strange = await FakeEmbedder(model="new").embed(["后来的事"], purpose="passage")
    await collection.add([Row("last", "后来的事", {"user_id": "u"}, strange[0])])
    assert not await SpaceGuard(FakeEmbedder()).adopt(collection)


async def test_a_write_during_a_rebuild_is_stored_with_zeros_of_the_old_dimension():
    collection = await filled(FakeEmbedder(model="old", dimension=32), "我对花生过敏")
    new = FakeEmbedder(model="new")
    await collection.annotate({REBUILDING: identity(await new.space())})
    vector = await SpaceGuard(new).passage(collection, "新的事")
    assert vector.shape == (32,)
    assert not vector.any()
    with pytest.raises(SpaceMismatch):
        await SpaceGuard(FakeEmbedder(model="third")).passage(collection, "新的事")


async def test_spellings_of_one_address_are_one_space_and_other_addresses_are_not():
    def space(url, protocol="ollama-embed"):
        return VectorSpace(protocol, "bge-m3", url, dimension=8)

    marks = stamp(space("http://127.0.0.1:11434"))
    for same in ("http://127.0.0.1:11434/", "http://localhost:11434", "http://127.0.0.1:11434/api/embed"):
        assert match(marks, space(same)) == "same"
        published = {k: v for k, v in stamp(space(same)).items() if k not in ("embed_identity", "embed_dimension")}
        assert match(published, space("http://127.0.0.1:11434")) == "same"
    assert match(marks, space("http://127.0.0.1:11435")) == "different"
    assert match(marks, space("http://10.0.0.2:11434")) == "different"


async def test_bars_inside_names_do_not_make_two_settings_one():
    one = VectorSpace("openai", "a|b", "c")
    other = VectorSpace("openai", "a", "b|c")
    assert one.legacy_fingerprint == other.legacy_fingerprint
    assert identity(one) != identity(other)
    assert match(stamp(one), other) == "different"


async def test_auto_that_became_a_model_is_that_model_asked_for_by_name():
    auto = VectorSpace("ollama-embed", "auto", "http://127.0.0.1:1", resolved_model="bge-m3:latest", dimension=8)
    named = VectorSpace("ollama-embed", "bge-m3", "http://127.0.0.1:1", resolved_model="bge-m3", dimension=8)
    assert match(stamp(auto), named) == "same"


async def test_a_probe_that_cannot_be_read_counts_as_none():
    for bad in ("", "不是", "AAA", "AAAA", 7):
        assert recorded_probe({PROBE: bad}) is None


class SwappedWhileAsked:
    """A collection that is swapped for one of another model right after its rows were read."""

    def __init__(self, old, new):
        self.old, self.new, self.current = old, new, old

    async def partition(self, key):
        read = await self.current.partition(key)
        self.current = self.new
        return read

    async def metadata(self):
        return await self.current.metadata()

    async def count(self):
        return await self.current.count()


async def test_the_verdict_on_one_collection_is_never_applied_to_the_vectors_of_another():
    store, new = MemoryStore(), FakeEmbedder(model="new")
    collections = []
    for name, embedder in (("a", FakeEmbedder(model="old")), ("b", new)):
        collection = await store.open(name)
        await SpaceGuard(embedder).claim(collection)
        vectors = await embedder.embed([name], purpose="passage")
        await collection.add([Row(name, name, {"user_id": "u"}, vectors[0])])
        collections.append(collection)
    partition, objection = await SpaceGuard(new).partition(SwappedWhileAsked(*collections), "u")
    assert (partition.rows[0].id, objection) == ("b", "")
