import json

import pytest
from support.services import ZHANG
from support.upkeep import Light, contents, fact, fill, place, whole_space

from amrita_plugin_memory.embedding import FakeEmbedder
from amrita_plugin_memory.facts import COLLECTION, Facts
from amrita_plugin_memory.kernel.clock import ManualClock
from amrita_plugin_memory.kernel.errors import SpaceMismatch
from amrita_plugin_memory.ops.backup.shelf import listed
from amrita_plugin_memory.ops.jobs.startup import action, check_in, must_wait, until_known
from amrita_plugin_memory.ops.upkeep.names import rebuild_of
from amrita_plugin_memory.retrieval import Recall
from amrita_plugin_memory.retrieval.fingerprint import PROBE, PROBE_TEXT, stamp

KEY = ZHANG.user.key()


def facts_of(at, recall=None):
    return Facts(
        store=at.store,
        embedder=at.embedder,
        recall=recall or Recall(at.embedder),
        clock=ManualClock(),
        limit=lambda: 1000,
    )


class Spy(Recall):
    """Notes every pair of query vector and stored vectors that is about to be compared."""

    def __init__(self, embedder):
        super().__init__(embedder)
        self.compared = []
        self._asked = embedder

    async def ask(self, question, partition, *, words_only="", **options):
        before = len(self._asked.calls)
        answer = await super().ask(question, partition, words_only=words_only, **options)
        queries = [call for call in self._asked.calls[before:] if call.purpose == "query"]
        if answer.mode == "hybrid" or queries:
            self.compared.append(partition.matrix)
        return answer


async def yes(_):
    return True


async def no(_):
    return False


SAME_SIZE, OTHER_SIZE = Light(model="new", dimension=64), Light(model="new", dimension=32)


@pytest.mark.parametrize("new", [SAME_SIZE, OTHER_SIZE], ids=["same size", "other size"])
@pytest.mark.parametrize("tty", [None, yes, no], ids=["no terminal", "yes", "no"])
@pytest.mark.parametrize("policy", ["ask", "auto", "never", "refuse"])
async def test_whatever_the_policy_vectors_of_two_models_never_meet(tmp_path, policy, tty, new):
    old = Light(model="old", dimension=64)
    at = place(tmp_path, embedder=new, embed_mismatch_policy=policy)
    await fill(at.store, [fact(i, key=KEY) for i in range(30)], old)
    spy = Spy(new)
    facts = facts_of(at, spy)
    before = await facts.recall(ZHANG, scope="user", question="要记住的事")
    checked = await check_in(at, tty=tty is not None, confirm=tty)
    after = await facts.recall(ZHANG, scope="user", question="要记住的事")
    rebuilt = policy == "auto" or (policy == "ask" and tty is yes)
    assert checked.states[COLLECTION] == ("rebuilt" if rebuilt else "words")
    assert checked.load == (policy != "refuse" or rebuilt)
    assert before.note
    assert bool(after.note) == (not rebuilt)
    assert after.found
    assert len(spy.compared) == int(rebuilt)
    assert await whole_space(at.store, new if rebuilt else old)
    if rebuilt:
        assert (await facts.remember(ZHANG, scope="user", content="新的事")).fact.content == "新的事"
        assert listed(at.backups)
    else:
        with pytest.raises(SpaceMismatch):
            await facts.remember(ZHANG, scope="user", content="新的事")
        assert "reindex" in checked.said[-1]
    assert await whole_space(at.store, new if rebuilt else old)


async def test_the_same_model_goes_on_and_nothing_is_said(tmp_path):
    at = place(tmp_path, embedder=Light())
    await fill(at.store, [fact(1)], at.embedder)
    await (await at.store.open(COLLECTION)).annotate({"key_schema_version": 2})
    checked = await check_in(at)
    assert (checked.states[COLLECTION], checked.said, checked.load) == ("same", (), True)


async def test_an_empty_collection_is_stamped_and_a_missing_one_is_not_made(tmp_path):
    at = place(tmp_path, embedder=Light())
    assert (await check_in(at)).states == {COLLECTION: "none", at.knowledge: "none"}
    assert await at.store.names() == []
    collection = await at.store.open(COLLECTION)
    assert (await check_in(at)).states[COLLECTION] == "empty"
    assert (await collection.metadata())[PROBE]


@pytest.mark.parametrize("env", [{"embed_check_on_startup": False}, {"ambot_command_context": True}])
async def test_the_check_can_be_skipped(tmp_path, env):
    at = place(tmp_path, embedder=Light(model="new"), embed_mismatch_policy="refuse", **env)
    await fill(at.store, [fact(1)], Light(model="old"))
    checked = await check_in(at)
    assert (checked.states[COLLECTION], checked.load) == ("skipped", True)
    assert not must_wait(at, tty=True)


async def test_a_service_that_is_down_ends_the_check_in_words_and_not_in_an_error(tmp_path):
    at = place(tmp_path, embedder=FakeEmbedder(down=True), embed_mismatch_policy="auto")
    await fill(at.store, [fact(1)], Light(model="old"))
    checked = await check_in(at)
    assert (checked.states[COLLECTION], checked.load) == ("unknown", True)
    assert set(await contents(at.store)) == {fact(1).id}


async def test_a_service_that_comes_late_still_gets_what_the_policy_asks_for(tmp_path):
    at = place(tmp_path, embedder=Light(model="new", dimension=32), embed_mismatch_policy="auto")
    await fill(at.store, [fact(i) for i in range(5)], Light(model="old", dimension=64))
    at.embedder.down = True
    waited = []

    async def sleep(seconds):
        waited.append(seconds)
        at.embedder.down = len(waited) < 3

    found = await until_known(await check_in(at), lambda: check_in(at), sleep=sleep)
    assert found.states[COLLECTION] == "rebuilt"
    assert waited == sorted(waited) and len(waited) == 3
    at.embedder.down = False
    assert await whole_space(at.store, at.embedder)


async def test_data_of_the_published_plugin_with_the_same_settings_gets_our_marks(tmp_path):
    at = place(tmp_path, embedder=Light())
    collection = await fill(at.store, [fact(i, key="user_1") for i in range(8)], at.embedder, claim=False)
    marks = {k: v for k, v in stamp(await at.embedder.space()).items() if k in ("embed_fingerprint", "embed_model")}
    await collection.annotate(marks)
    checked = await check_in(at)
    assert checked.states[COLLECTION] == "same"
    metadata = await collection.metadata()
    assert metadata[PROBE]
    assert metadata["key_schema_version"] == 2
    assert {m["user_id"] for _, m, _ in (await contents(at.store)).values()} == {"QQPlatform_Private_1"}


async def test_data_of_the_published_plugin_whose_model_was_swapped_is_not_compared(tmp_path):
    at = place(tmp_path, embedder=Light(model="pulled anew"), embed_mismatch_policy="never")
    collection = await fill(at.store, [fact(i, key=KEY) for i in range(8)], Light(model="before"), claim=False)
    await collection.annotate({"embed_fingerprint": (await at.embedder.space()).legacy_fingerprint})
    assert (await check_in(at)).states[COLLECTION] == "words"
    assert (await facts_of(at).recall(ZHANG, scope="user", question="要记住")).note


async def test_mixed_vectors_that_the_published_plugin_left_are_found_and_mended(tmp_path):
    """F42: rows of a new model among those of the old one."""
    new = Light(model="new")
    at = place(tmp_path, embedder=new, embed_mismatch_policy="auto")
    collection = await fill(at.store, [fact(i) for i in range(20)], Light(model="old"), claim=False)
    await fill(at.store, [fact(99)], new, claim=False)
    await collection.annotate({"embed_fingerprint": (await new.space()).legacy_fingerprint})
    assert (await check_in(at)).states[COLLECTION] == "rebuilt"
    assert await whole_space(at.store, new)


async def test_an_interrupted_rebuild_goes_on_at_the_next_start(tmp_path):
    new = Light(model="new", dimension=32, fail_after=12)
    at = place(tmp_path, embedder=new, embed_mismatch_policy="auto")
    await fill(at.store, [fact(i) for i in range(1200)], Light(model="old"))
    assert (await check_in(at)).states[COLLECTION] == "unknown"
    assert rebuild_of(COLLECTION) in await at.store.names()
    new.fail_after = None
    embedded = len(new.calls)
    assert (await check_in(at)).states[COLLECTION] == "rebuilt"
    again = {t for call in new.calls[embedded:] for t in call.texts} - {PROBE_TEXT}
    assert len(again) < 800
    assert await whole_space(at.store, new)


async def test_what_is_said_while_a_rebuild_runs_is_kept_and_found_by_words(tmp_path):
    new = Light(model="new", dimension=32)
    at = place(tmp_path, embedder=new, embed_mismatch_policy="auto")
    await fill(at.store, [fact(i, key=KEY) for i in range(40)], Light(model="old"))
    facts, spoken = facts_of(at), []
    plain = new.embed

    class Speaking(Light):
        async def embed(self, texts, *, purpose, deadline=None):
            if len(texts) > 5 and not spoken:
                spoken.append(1)
                await facts.remember(ZHANG, scope="user", content="重建时说的话")
                found = await facts.recall(ZHANG, scope="user", question="重建时说的话")
                assert found.found[0].fact.content == "重建时说的话"
            return await plain(texts, purpose=purpose)

    speaking = Speaking(model="new", dimension=32)
    from dataclasses import replace

    await check_in(replace(at, embedder=speaking))
    assert spoken
    assert await whole_space(at.store, new)
    assert "重建时说的话" in {d for d, _, _ in (await contents(at.store)).values()}


async def test_knowledge_is_checked_as_well(tmp_path):
    at = place(tmp_path, embedder=Light(model="new"), embed_mismatch_policy="auto")
    (tmp_path / "knowledge_index.json").write_text(json.dumps([{"kid": "k", "summary": "摘要"}]), "utf-8")
    await fill(at.store, [fact(1)], Light(model="old"), name=at.knowledge)
    assert (await check_in(at)).states[at.knowledge] == "rebuilt"


def test_what_a_policy_leads_to():
    assert [action(p, tty=False) for p in ("ask", "auto", "never", "refuse")] == ["words", "rebuild", "words", "refuse"]
    assert action("ask", tty=True) == "ask"
