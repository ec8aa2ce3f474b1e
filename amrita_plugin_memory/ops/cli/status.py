"""``status``: how the memory stands, in well under two seconds and while the bot runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import click

from amrita_plugin_memory.embedding.choose import differs
from amrita_plugin_memory.embedding.ports import VectorSpace
from amrita_plugin_memory.kernel.errors import ConfigInvalid
from amrita_plugin_memory.ops.backup.shelf import listed
from amrita_plugin_memory.ops.bot.folder import BotFolder
from amrita_plugin_memory.ops.upkeep.names import (
    KEY_VERSION,
    KEYS_NOW,
    PENDING,
    STATE,
    aside_of,
    rebuild_of,
)
from amrita_plugin_memory.retrieval.fingerprint import DOUBTED, FINGERPRINT, recorded
from amrita_plugin_memory.vectordb.peek import Glance, peek, writer

from .common import command, opened
from .output import ACTION, OK, Output

NAME: Final = "amrita_user_memory"
_STATES: Final = {
    "empty": "还没有记忆",
    "same": "✅ 一致",
    "different": "⚠️ 不一致：检索只按字词，不写入新记忆",
    "unmarked": "⚠️ 没有记录嵌入模型，启动机器人时会核对",
}
_MENDS: Final = {
    "different": "停止机器人后运行 ambot memory reindex，或把 EMBEDDING_* 改回原来的模型",
    "unfinished": "有一次重建没有做完，停止机器人后运行 ambot memory reindex 会接着做",
    "keys": "有旧的分区键，启动机器人会自动迁移，也可以运行 ambot memory migrate-keys",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """How one collection stands to the configured model, by names alone: nothing is embedded for a status."""

    state: str
    rows: int
    recorded: VectorSpace | None
    glance: Glance | None


@click.command()
@command
def status(folder: BotFolder, output: Output) -> None:
    """记忆库的状态：条数、嵌入指纹、分区键、备份。机器人运行时也可以看。"""
    found = local_glances(folder) if folder.env.vector_db_type == "local" else remote_glances(folder, output)
    by_name = {glance.name: glance for glance in found}
    facts = standing(folder, by_name.get(NAME))
    knowledge = standing(folder, by_name.get(folder.file.subconscious.knowledge_collection_name))
    actions = _actions(facts, knowledge, by_name)
    data = _data(folder, (facts, knowledge), actions)
    output.finish(data, _text(data), code=ACTION if {"different", "unfinished"} & set(actions) else OK)


def standing(folder: BotFolder, glance: Glance | None) -> Standing:
    """Compare what a collection says of itself with the settings."""
    if glance is None or not glance.rows:
        return Standing("empty", 0, None, glance)
    space = recorded(glance.metadata)
    if space is None:
        return Standing("unmarked", glance.rows, None, glance)
    same = not glance.metadata.get(DOUBTED) and not asks_for_another(folder, space)
    return Standing("same" if same else "different", glance.rows, space, glance)


def asks_for_another(folder: BotFolder, space: VectorSpace) -> bool:
    """True when the settings name another model than the recorded one; ``auto`` keeps to the recorded one."""
    from amrita_plugin_memory.embedding.choose import Choice

    env = folder.env
    if env.embedding_proctol == "auto":
        return False
    if env.embedding_proctol == "embedded":
        return space.protocol != "embedded"
    try:
        choice = Choice(env.embedding_proctol, model=env.embedding_model_name, base_url=env.embedding_model_url)
        return differs(choice, space)
    except ConfigInvalid:
        return True


def local_glances(folder: BotFolder) -> list[Glance]:
    """Every collection of the local directory, read without Chroma."""
    return peek(folder.chroma, partitions_of=NAME)


def remote_glances(folder: BotFolder, output: Output) -> list[Glance]:
    """Every collection of the server.

    Raises:
        StoreUnavailable: it does not answer in time.

    """

    async def look() -> list[Glance]:
        async with opened(folder, output, writable=False) as place:
            found: list[Glance] = []
            for name in await place.store.names():
                collection = await place.store.open(name, create=False)
                if collection is not None:
                    found.append(Glance(name, await collection.count(), None, await collection.metadata()))
            return found

    return asyncio.run(look())


def _actions(facts: Standing, knowledge: Standing, by_name: dict[str, Glance]) -> list[str]:
    actions = ["different"] if "different" in (facts.state, knowledge.state) else []
    left = [by_name.get(rebuild_of(NAME)), by_name.get(aside_of(NAME))]
    if any(glance is not None and glance.rows for glance in left):
        actions.append("unfinished")
    if facts.glance is not None and facts.rows and facts.glance.metadata.get(KEY_VERSION) != KEYS_NOW:
        actions.append("keys")
    return actions


def _data(folder: BotFolder, standings: tuple[Standing, Standing], actions: list[str]) -> dict[str, Any]:
    facts, knowledge = standings
    metadata = facts.glance.metadata if facts.glance else {}
    env = folder.env
    backups = listed(folder.backups)
    return {
        "bot": str(folder.root),
        "data_dir": str(folder.data_dir),
        "store": env.vector_db_type,
        "running": writer(folder.chroma) is not None if env.vector_db_type == "local" else None,
        "collection": NAME,
        "exists": facts.glance is not None,
        "rows": facts.rows,
        "partitions": len(facts.glance.partitions) if facts.glance and env.vector_db_type == "local" else None,
        "scopes": _scopes(facts.glance.partitions if facts.glance else {}),
        "top": _top(facts.glance.partitions if facts.glance else {}),
        "state": facts.state,
        "fingerprint": metadata.get(FINGERPRINT),
        "recorded": _space(facts.recorded),
        "configured": {
            "protocol": env.embedding_proctol,
            "model": env.embedding_model_name,
            "url": env.embedding_model_url if env.service_is_configured else "",
        },
        "policy": env.embed_mismatch_policy,
        "pending_vectors": bool(metadata.get(PENDING)),
        "rebuilding": bool(metadata.get(STATE)) or "unfinished" in actions,
        "key_version": metadata.get(KEY_VERSION),
        "knowledge": {"rows": knowledge.rows, "state": knowledge.state},
        "backups": {
            "count": len(backups),
            "newest": backups[0].made.isoformat() if backups else None,
            "bytes": sum(backup.bytes for backup in backups),
        },
        "actions": [_MENDS[name] for name in actions],
    }


def _space(space: VectorSpace | None) -> dict[str, Any] | None:
    if space is None:
        return None
    model = space.package or space.resolved_model or space.model
    return {"protocol": space.protocol, "model": model, "url": space.base_url, "dimension": space.dimension}


def _scopes(partitions: dict[str, int]) -> dict[str, int]:
    from amrita_plugin_memory.ops.backup.manifest import scope_of

    scopes = {"user": 0, "group": 0}
    for key, rows in partitions.items():
        scopes[scope_of(key, {})] += rows
    return scopes


def _top(partitions: dict[str, int]) -> dict[str, int]:
    return dict(sorted(partitions.items(), key=lambda item: (-item[1], item[0]))[:10])


def _text(data: dict[str, Any]) -> str:
    space = data["recorded"]
    made = f"{space['protocol']} · {space['model']} · {space['dimension'] or '?'} 维" if space else "（还没有记录）"
    scopes, backups, running = data["scopes"], data["backups"], data["running"]
    if data["store"] == "remote":
        rows = f"{data['rows']} 条（远程库，分区没有统计，可用 stats 查看）"
    else:
        rows = f"{data['rows']} 条，{data['partitions']} 个分区（个人 {scopes['user']}，群 {scopes['group']}）"
    configured = f"{data['configured']['protocol']} · {data['configured']['model']} {data['configured']['url']}"
    newest = f"，最新 {backups['newest']}" if backups["newest"] else ""
    bot = "（远程库，不知道）" if running is None else "在运行" if running else "没有运行"
    lines = [
        f"记忆   {rows}",
        f"知识   {data['knowledge']['rows']} 条",
        f"模型   {made}",
        f"配置   {configured.rstrip()}",
        f"状态   {_STATES[data['state']]}",
        f"分区键 版本 {data['key_version'] or '—'}",
        f"备份   {backups['count']} 份{newest}",
        f"机器人 {bot}",
    ]
    if data["pending_vectors"]:
        lines.append("提示   有些记忆还没有向量，启动时会补上，之前按字词检索")
    return "\n".join([*lines, *(f"要做   {sentence}" for sentence in data["actions"])])
