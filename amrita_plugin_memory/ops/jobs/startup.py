"""What happens when the bot starts: mend what a crash left, bring keys up to date, compare the embedding model.

The specification's flow chart, with one difference: ``ask`` without a terminal answers by words instead of not loading
(``refuse`` is the literal form). Nothing here runs at import, and no path compares or mixes vectors of two models.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Final, Literal, TypeAlias

from amrita_plugin_memory.facts import COLLECTION
from amrita_plugin_memory.kernel.errors import AmritaMemoryError, EmbeddingUnavailable, Unavailable
from amrita_plugin_memory.ops.upkeep.keys import Moved, migrate
from amrita_plugin_memory.ops.upkeep.names import KEY_VERSION, KEYS_NOW
from amrita_plugin_memory.ops.upkeep.progress import Meter
from amrita_plugin_memory.ops.upkeep.recover import recover
from amrita_plugin_memory.retrieval import SpaceGuard
from amrita_plugin_memory.retrieval.fingerprint import PROBE
from amrita_plugin_memory.retrieval.guard import SWAPPED, Verdict
from amrita_plugin_memory.settings.env import MismatchPolicy
from amrita_plugin_memory.vectordb.ports import Collection

from .place import Place
from .reindex import heal, reindex

State: TypeAlias = Literal["none", "empty", "same", "words", "rebuilt", "unknown", "skipped"]
Action: TypeAlias = Literal["rebuild", "ask", "words", "refuse"]
Confirm: TypeAlias = Callable[[str], Awaitable[bool]]

_log = logging.getLogger("amrita_memory.ops")
QUESTION: Final = "嵌入模型与建立记忆库时不同，现在用新模型重建全部 {count} 条记忆吗？重建前会自动备份"
PARAGRAPH: Final = (
    "{what}。现有 {count} 条记忆都在，没有改动；在重建之前，检索只按字词，不写入新记忆，备忘录照常。"
    "要用现在的模型重建：停止机器人后运行 `ambot memory reindex`，"
    "或在 .env 设 EMBED_MISMATCH_POLICY=auto 后重启；要继续用原来的模型：把 EMBEDDING_* 改回去。"
)
_PAUSES: Final = (60.0, 120.0, 300.0, 600.0, 1800.0)  # seconds
_ANOTHER: Final = "嵌入模型与建立记忆库时不同（EMBED_MISMATCH_POLICY={policy}）"


@dataclass(frozen=True, slots=True)
class CheckedIn:
    """What the check found and did. ``load`` is False only under the policy ``refuse``.

    ``states`` maps a collection to how it stands; ``words`` means: by words alone until it is rebuilt.
    """

    load: bool = True
    states: dict[str, State] = field(default_factory=dict[str, State])
    said: tuple[str, ...] = ()
    moved: Moved | None = None


async def until_known(
    checked: CheckedIn, check: Callable[[], Awaitable[CheckedIn]], *, sleep: Callable[[float], Awaitable[None]]
) -> CheckedIn:
    """Check again, ever more rarely, while a service or store that was down kept the check from its end.

    The bot and its embedding service often boot together: what the policy asks for happens when the service is there.
    """
    for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
        if "unknown" not in checked.states.values():
            break
        await sleep(pause)
        checked = await check()
    return checked


def must_wait(place: Place, *, tty: bool) -> bool:
    """True when the bot must not go on before the check is done: it may refuse, or ask at the terminal."""
    checks = place.env.embed_check_on_startup and not place.env.ambot_command_context
    policy = place.env.embed_mismatch_policy
    return checks and (policy == "refuse" or (policy == "ask" and tty))


def action(policy: MismatchPolicy, *, tty: bool) -> Action:
    """What a mismatch leads to. Pure."""
    if policy == "auto":
        return "rebuild"
    if policy == "refuse":
        return "refuse"
    return "ask" if policy == "ask" and tty else "words"


async def check_in(place: Place, *, tty: bool = False, confirm: Confirm | None = None) -> CheckedIn:
    """Run the whole check. Meant for a background task, unless ``must_wait``.

    ``confirm`` is asked one question when ``tty``; without it nobody is asked. A store or service that is down ends
    the check with a log line, never with an error: the guard stands before every single call anyway.

    """
    if place.env.ambot_command_context:
        return CheckedIn(states=dict.fromkeys(place.collections, "skipped"))
    said: list[str] = []
    try:
        for name in place.collections:
            said += await recover(place.store, name)
        if not place.env.embed_check_on_startup:
            return CheckedIn(states=dict.fromkeys(place.collections, "skipped"), said=tuple(said))
        moved = await _keys(place)
    except Unavailable as e:
        _log.warning("[Memory] 启动检查没有完成：%s", e)
        return CheckedIn(states=dict.fromkeys(place.collections, "unknown"), said=(*said, str(e)))
    result = CheckedIn(said=tuple(said), moved=moved)
    for name in place.collections:
        result = await _collection(place, name, result, confirm if tty else None)
    return result


async def _keys(place: Place) -> Moved | None:
    collection = await place.store.open(COLLECTION, create=False)
    if collection is None or (await collection.metadata()).get(KEY_VERSION) == KEYS_NOW:
        return None
    meter = Meter("keys", await collection.count(), place.pace.clock, place.pace.report)
    moved = await migrate(collection, place.memos, limit=place.memo_limit, meter=meter)
    if moved.facts or moved.memos or moved.skipped:
        _log.info("[Memory] 分区键已迁移：记忆 %d 条，备忘录 %d 条", moved.facts, moved.memos)
    for reason, count in moved.reasons.items():
        _log.warning("[Memory] 有 %d 条没有迁移：%s", count, reason)
    return moved


async def _collection(place: Place, name: str, so_far: CheckedIn, confirm: Confirm | None) -> CheckedIn:
    state, said, load = await _bordered(place, name, confirm)
    for sentence in said:
        _log.warning("[Memory] %s", sentence)
    return replace(so_far, load=so_far.load and load, states={**so_far.states, name: state}, said=(*so_far.said, *said))


async def _bordered(place: Place, name: str, confirm: Confirm | None) -> tuple[State, list[str], bool]:
    try:
        collection = await place.store.open(name, create=False)
        if collection is None:
            return "none", [], True
        verdict = await settled(SpaceGuard(place.embedder), collection)
        if verdict == "empty":
            await SpaceGuard(place.embedder).claim(collection)
            if name == COLLECTION:
                await collection.annotate({KEY_VERSION: KEYS_NOW})  # what will be stored has the keys of today
            return "empty", [], True
        if verdict == "same":
            healed = await heal(place, name)
            return "same", [f"补上了 {healed} 条记忆的向量"] if healed else [], True
        return await _mismatch(place, collection, verdict, confirm)
    except EmbeddingUnavailable as e:
        return "unknown", [f"启动检查没有等到嵌入服务，恢复之前按字词检索：{e}"], True
    except AmritaMemoryError as e:
        return "unknown", [f"启动检查没有完成：{e}"], True


async def settled(guard: SpaceGuard, collection: Collection) -> Verdict:
    """The verdict, after vectors of the published plugin were compared with the model they should be of.

    Raises:
        EmbeddingUnavailable: the embedder does not answer.

    """
    verdict = await guard.verdict(collection)
    if verdict == "unmarked" or (verdict == "same" and not (await collection.metadata()).get(PROBE)):
        await guard.adopt(collection)
        return await guard.verdict(collection)
    return verdict


async def _mismatch(
    place: Place, collection: Collection, verdict: Verdict, confirm: Confirm | None
) -> tuple[State, list[str], bool]:
    policy = place.env.embed_mismatch_policy
    what = SWAPPED.partition("，在重建")[0] if verdict == "swapped" else _ANOTHER.format(policy=policy)
    count = await collection.count()
    step = action(policy, tty=confirm is not None)
    if step == "ask" and confirm is not None and await confirm(QUESTION.format(count=count)):
        step = "rebuild"
    if step == "rebuild":
        _log.info("[Memory] %s，开始在后台重建 %d 条记忆，期间按字词检索", what, count)
        done = await reindex(place, collection.name)
        return "rebuilt", [f"记忆库已用新的嵌入模型重建：{done.rows if done else 0} 条"], True
    return "words", [PARAGRAPH.format(what=what, count=count)], step != "refuse"
