"""``doctor``: go through everything an owner trips over, and print the mend."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Final

import click

from amrita_plugin_memory.kernel.errors import AmritaMemoryError
from amrita_plugin_memory.ops.backup.read import check
from amrita_plugin_memory.ops.backup.shelf import listed
from amrita_plugin_memory.ops.bot.findings import Finding, find_all
from amrita_plugin_memory.ops.bot.folder import BotFolder
from amrita_plugin_memory.ops.upkeep.names import PENDING
from amrita_plugin_memory.vectordb.peek import Glance, peek, writer
from amrita_plugin_memory.vectordb.torn.files import damaged

from .common import command
from .output import ACTION, FAILED, OK, Output
from .status import NAME, remote_glances, standing

_MARKS: Final = {"ok": "✅", "warn": "⚠️", "fail": "❌"}
_SECONDS: Final = 20.0  # for the embedding service, a first load of a model included


@click.command()
@click.option("--offline", is_flag=True, help="不连接嵌入服务和远程的 Chroma")
@command
def doctor(folder: BotFolder, output: Output, *, offline: bool) -> None:
    """逐项检查：环境、配置、数据库、记忆库、嵌入服务、备份。只看，不改。"""
    found = list(_all(folder, output, offline=offline))
    worst = FAILED if any(one.level == "fail" for one in found) else OK
    code = worst or (ACTION if any(one.level == "warn" for one in found) else OK)
    lines: list[str] = []
    for one in found:
        lines.append(f"{_MARKS[one.level]} {one.name}：{one.say}")
        if one.mend:
            lines.append(f"   → {one.mend}")
    output.finish({"findings": [asdict(one) for one in found]}, "\n".join(lines), code=code)


def _all(folder: BotFolder, output: Output, *, offline: bool) -> Iterator[Finding]:
    yield from _safe("环境", lambda: list(find_all(folder)))
    yield from _safe("记忆库", lambda: _store(folder, output, offline=offline))
    yield from _safe("备份", lambda: _backups(folder))
    if not offline:
        yield from _safe("嵌入服务", lambda: _embedding(folder))


def _safe(name: str, look: Callable[[], list[Finding]]) -> Iterator[Finding]:
    try:
        yield from look()
    except AmritaMemoryError as e:
        yield Finding(name, "fail", str(e), "请先解决上面这一句")


def _store(folder: BotFolder, output: Output, *, offline: bool) -> list[Finding]:
    if folder.env.vector_db_type == "remote":
        server = f"远程 {folder.env.vector_db_server}:{folder.env.vector_db_port}"
        if offline:
            return [Finding("记忆库", "ok", f"{server}，没有连接")]
        return _contents(folder, remote_glances(folder, output), where=f"{server}，")
    found = _contents(folder, peek(folder.chroma))
    running = writer(folder.chroma)
    if running is not None:
        found.append(Finding("机器人", "ok", f"在运行（进程 {running}），会改动数据的命令要先停止它"))
    elif damaged(folder.chroma):
        mend = "启动机器人会自己修复，或运行 ambot memory reindex"
        found.append(Finding("向量索引", "warn", "上次中断时写坏了，文字都在", mend))
    return found


def _contents(folder: BotFolder, glances: list[Glance], *, where: str = "") -> list[Finding]:
    by_name = {glance.name: glance for glance in glances}
    facts = standing(folder, by_name.get(NAME))
    if facts.state == "different":
        mend = "停止机器人后运行 ambot memory reindex，或把 EMBEDDING_* 改回原来的模型"
        found = [Finding("嵌入指纹", "fail", "记忆库是用另一个嵌入模型建立的", mend)]
    else:
        found = [Finding("记忆库", "ok", f"{where}{facts.rows} 条")]
    base = by_name.get(folder.file.subconscious.knowledge_collection_name)
    if standing(folder, base).state == "different":
        found.append(
            Finding("知识库指纹", "fail", "知识库是用另一个嵌入模型建立的", "停止机器人后运行 ambot memory reindex")
        )
    if any(glance.metadata.get(PENDING) for glance in (facts.glance, base) if glance is not None):
        found.append(Finding("向量", "warn", "有些记忆还没有向量，暂时只按字词找到", "启动机器人会补上"))
    if any(name.endswith(("__rebuild", "__old")) and glance.rows for name, glance in by_name.items()):
        found.append(Finding("重建", "warn", "有一次没有做完", "停止机器人后运行 ambot memory reindex 会接着做"))
    return found


def _backups(folder: BotFolder) -> list[Finding]:
    backups = listed(folder.backups)
    if not backups:
        return [Finding("备份", "warn", "还没有", "请运行 ambot memory backup create")]
    try:
        checked = check(backups[0].path)
    except AmritaMemoryError as e:
        return [Finding("备份", "fail", str(e), "请运行 ambot memory backup create 再做一份")]
    return [Finding("备份", "ok", f"{len(backups)} 份，最新一份有 {checked.tally.rows} 条，校验通过")]


def _embedding(folder: BotFolder) -> list[Finding]:
    from amrita_plugin_memory.embedding import build_embedder
    from amrita_plugin_memory.retrieval.fingerprint import recorded

    local = folder.env.vector_db_type == "local"
    glance = next((one for one in peek(folder.chroma) if one.name == NAME), None) if local else None
    space = recorded(glance.metadata) if glance and glance.rows else None

    async def look() -> list[Finding]:
        embedder = build_embedder(folder.env, recorded=space)
        try:
            async with asyncio.timeout(_SECONDS):
                choice = await embedder.choice()
                vectors = await embedder.embed(["你好"], purpose="query")
        except TimeoutError:
            return [Finding("嵌入服务", "fail", "没有及时应答", "请检查 EMBEDDING_MODEL_URL，并确认服务已经启动")]
        except AmritaMemoryError as e:
            return [
                Finding("嵌入服务", "fail", str(e), "恢复之前按字词检索；换用内置模型可写 EMBEDDING_PROTOCOL=embedded")
            ]
        finally:
            await embedder.aclose()
        say = f"{choice.protocol}，{vectors.shape[1]} 维（{choice.reason}）"
        return [Finding("嵌入服务", "warn" if choice.hint else "ok", say, choice.hint)]

    return asyncio.run(look())
