"""``amos``: the command line of the library. Data goes to stdout, progress and complaints to stderr."""

import asyncio
import contextlib
import dataclasses
import json
import sys
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

import click
from rich.console import Console

from amrita_plugin_memory.amos import VERSION
from amrita_plugin_memory.amos.bundle import ImportOptions, ImportReport, PortabilityManager
from amrita_plugin_memory.amos.doctor import Diagnosis, examine
from amrita_plugin_memory.amos.facade import AMOS
from amrita_plugin_memory.amos.ground import FileRoot, layout, uris
from amrita_plugin_memory.amos.memory import Index
from amrita_plugin_memory.amos.monitor import Monitor
from amrita_plugin_memory.amos.search import Search, SearchOptions
from amrita_plugin_memory.kernel.errors import AmritaMemoryError, InvalidName, Locked, NotFound
from amrita_plugin_memory.kernel.scope import Scope

FAILED: Final = 1
USAGE: Final = 2
PARTIAL: Final = 3
ACTION_NEEDED: Final = 4
LOCKED: Final = 11
INTERRUPTED: Final = 130
T = TypeVar("T")

EXIT_CODES: Final = (
    "\b\n退出码：0 成功 · 1 失败 · 2 用法错误 · 3 部分完成 · 4 需要处理（如 doctor 发现问题）"
    " · 11 数据被其他进程占用 · 130 被中断"
)
_SCOPES: Final = ("all", "session", "profile", "workflow", "knowledge", "archive")


class _Group(click.Group):
    """Turns errors into one sentence and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except Locked as error:
            _complain(str(error), LOCKED)
        except InvalidName as error:
            _complain(str(error), USAGE)
        except AmritaMemoryError as error:
            _complain(str(error), FAILED)
        except OSError as error:
            _complain(f"读写文件失败：{error.strerror or type(error).__name__}，请检查路径和权限", FAILED)
        except (KeyboardInterrupt, click.Abort):
            _complain("已中断", INTERRUPTED)


def _complain(text: str, code: int) -> None:
    Console(stderr=True, soft_wrap=True, highlight=False, markup=False).print(text)
    sys.exit(code)


def _root_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--root",
        type=click.Path(path_type=Path),
        envvar="AMOS_ROOT",
        default=Path("amos_root"),
        show_default=True,
        help="AMOS 根目录（也可用环境变量 AMOS_ROOT）",
    )(command)


def _actor_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option("--agent", help="该用户下的 Agent")(command)
    return click.option("--actor", envvar="AMOS_ACTOR", help="用户（也可用环境变量 AMOS_ACTOR）")(command)


def _json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--json", "as_json", is_flag=True, help="输出 JSON")(command)


def _open(root: Path) -> FileRoot:
    if not (root / layout.VERSION).is_file() and not (root / layout.MANIFEST).is_file():
        raise NotFound(f"{root} 不是 AMOS 根目录，可用 amos init 建立，或用 --root 指定")
    return FileRoot.open(root)


@contextlib.contextmanager
def _opened_or_made(root: Path) -> Generator[FileRoot]:
    """A root to import into; folders that were made for it go again when nothing came into them."""
    made = [] if root.exists() else [root / layout.PRIVATE, *(p for p in (root, *root.parents) if not p.exists())]
    try:
        yield FileRoot.open(root)
    finally:
        for folder in made:
            with contextlib.suppress(OSError):  # one that holds something stays, and so do those above it
                folder.rmdir()


def _show(value: object, text: str, *, as_json: bool) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, default=str) if as_json else text)


def _run(what: str, work: Coroutine[Any, Any, T]) -> T:
    console = Console(stderr=True)
    if not console.is_terminal:
        return asyncio.run(work)
    with console.status(what):
        return asyncio.run(work)


@click.group(cls=_Group, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, "--version", prog_name="amos", message="%(prog)s %(version)s", help="显示版本")
def amos() -> None:
    """AMOS-2.0 文件记忆：建立、检索、打包、检查一个根目录。"""


@amos.command(help="建立一个 AMOS 根目录（已有的不会被改动）")
@click.argument("root", type=click.Path(path_type=Path), default=Path("amos_root"))
@click.option("--actor", default="user_zhangsan", show_default=True, help="第一个用户")
@click.option("--agent", help="该用户下的 Agent")
@_json_option
def init(root: Path, actor: str, agent: str | None, as_json: bool) -> None:
    """Make a root."""

    async def make() -> str:
        async with await AMOS.create(root_dir=str(root), actor=actor, agent=agent) as opened:
            return opened.scope_name

    scope = _run("正在建立", make())
    _show({"root": str(root.resolve()), "scope": scope}, f"已建立 AMOS 根目录：{root.resolve()}", as_json=as_json)


@amos.command("export", help="打包为 .amos：整个根目录，或 --actor 一个用户，或再加 --agent 一个 Agent")
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@_root_option
@_actor_options
@_json_option
def export_(output: Path, root: Path, actor: str | None, agent: str | None, as_json: bool) -> None:
    """Write a package."""
    if agent and not actor:
        raise click.UsageError("--agent 需要同时给出 --actor")
    files = _open(root)
    result = _run("正在打包", PortabilityManager(files, Index(files)).export(output, actor, agent))
    text = f"已导出 {result.files} 个文件（{result.packed:,} 字节）：{result.path}\nsha256 {result.sha256}"
    if result.trusted_only:
        text += "\n这个包很大，导入时要加 --trusted"
    _show(dataclasses.asdict(result), text, as_json=as_json)


@amos.command("import", help="导入 .amos 包；默认不覆盖、不信任包里的权限文件，工具以草稿状态到达")
@click.argument("package", type=click.Path(path_type=Path))
@_root_option
@click.option("--overwrite", is_flag=True, help="覆盖内容不同的文件")
@click.option("--map", "mapping", multiple=True, metavar="旧=新", help="把包里的用户改名，可多次给出")
@click.option("--dry-run", is_flag=True, help="只报告差异，不改动")
@click.option("--trust-acl", is_flag=True, help="采用包里的权限文件")
@click.option("--trust-tools", is_flag=True, help="保留工具的可执行状态（只用于自己的备份）")
@click.option("--trusted", is_flag=True, help="不限制包的大小（只用于自己的备份）；文件名和链接照样检查")
@_json_option
def import_(package: Path, root: Path, mapping: tuple[str, ...], as_json: bool, **flags: bool) -> None:
    """Take a package in."""
    pairs = [pair.partition("=") for pair in mapping]
    if not all(old and new for old, _, new in pairs):
        raise click.UsageError("--map 的写法是 旧用户=新用户")
    options = dataclasses.replace(ImportOptions(actor_mapping={old: new for old, _, new in pairs}), **flags)
    if not package.is_file():
        raise NotFound(f"找不到数据包 {package}，请核对路径")
    with _opened_or_made(root) as files:
        report = _run("正在导入", PortabilityManager(files, Index(files)).import_bundle(package, options))
    _show(dataclasses.asdict(report), _report_text(report), as_json=as_json)
    if _is_partial(report):
        sys.exit(PARTIAL)


def _report_text(report: ImportReport) -> str:
    verb = "将会" if report.dry_run else "已"
    counts = {f"{verb}新增": report.added, f"{verb}替换": report.replaced, "保留本地": report.kept, "相同": report.same}
    lines = ["，".join(f"{word} {len(paths)}" for word, paths in counts.items()) + f"，跳过 {len(report.skipped)}"]
    for sign, paths in (("+", report.added), ("~", report.replaced), ("=", report.kept)):
        lines += [f"{sign} {path}" for path in paths]
    lines += [f"! {path}：{why}" for path, why in report.skipped.items()]
    if report.drafts:
        lines.append(f"{len(report.drafts)} 个工具以草稿状态到达，确认后才能执行")
    if report.missing_env_vars:
        lines.append(f"包需要的环境变量未设置：{'、'.join(report.missing_env_vars)}")
    if not report.verified:
        lines.append("包里没有校验清单，内容未经核对")
    return "\n".join(lines)


def _is_partial(report: ImportReport) -> bool:
    odd = [
        why for why in report.skipped.values() if why in ("名称不可用", "链接或特殊文件", "任务属于数据包以外的用户")
    ]
    return bool(report.kept or odd)


@amos.command(help="检索一个用户看得到的记忆")
@click.argument("query")
@_root_option
@_actor_options
@click.option("--top-k", default=5, show_default=True, type=click.IntRange(0, 1000), help="最多几条")
@click.option("--scope", default="all", show_default=True, type=click.Choice(_SCOPES), help="范围")
@click.option("--min-score", default=0.0, type=click.FloatRange(0), help="最低分数")
@click.option("--since", type=click.DateTime(), help="只要这个时间以后的（本地时间）")
@click.option("--assets", is_flag=True, help="也检索工具和页面")
@_json_option
def search(
    query: str, root: Path, actor: str | None, agent: str | None, top_k: int, assets: bool, as_json: bool, **narrow: Any
) -> None:
    """Search."""
    files, scope = _open(root), _scope(actor, agent)
    options = SearchOptions(narrow["scope"], narrow["min_score"], narrow["since"])

    async def ask() -> list[Any]:
        searching = Search(files, tags=Index(files).tags_of)
        try:
            find = searching.search_all if assets else searching.search
            return list(await find(scope, query, top_k, options))
        finally:
            await searching.close()

    found = _run("正在检索", ask())
    text = "\n\n".join(f"{hit.score:.2f} [{hit.type}] {hit.path}\n{hit.snippet}" for hit in found)
    _show([dataclasses.asdict(hit) for hit in found], text or "没有找到", as_json=as_json)


@amos.command(help="显示一个 amos:// 地址（或根目录内的相对路径）的内容")
@click.argument("uri")
@_root_option
@_actor_options
@_json_option
def show(uri: str, root: Path, actor: str | None, agent: str | None, as_json: bool) -> None:
    """Show a file."""
    files = _open(root)
    paths = uris.candidates(uri, _scope(actor, agent)) if uri.startswith(uris.SCHEME) else (layout.relative(uri),)
    for path in paths:
        text = _read(files, path)
        if text is not None:
            return _show({"uri": uri, "path": str(path), "text": text}, text, as_json=as_json)
    raise NotFound(f"{uri[:80]} 不存在")


def _read(files: FileRoot, path: PurePosixPath) -> str | None:
    for name in ("", "definition.md", "description.md", "manifest.json"):
        if files.exists(path / name):
            return files.read_text(path / name)
    return None


@amos.command(help="检查根目录：截断的行、坏字节、遗留的锁和临时文件、损坏的索引、无人执行的任务、权限")
@_root_option
@click.option("--fix", is_flag=True, help="修复可以安全修复的问题")
@_json_option
def doctor(root: Path, fix: bool, as_json: bool) -> None:
    """Look for damage."""
    diagnosis = examine(_open(root), fix=fix)
    rows = [
        {"code": f.code, "path": f.path, "text": f.text, "level": f.level, "mended": f in diagnosis.mended,
         "fixable": f.mend is not None}
        for f in diagnosis.found
    ]  # fmt: skip
    _show({"ok": not diagnosis.left, "findings": rows}, _diagnosis_text(diagnosis), as_json=as_json)
    if diagnosis.left:
        sys.exit(PARTIAL if diagnosis.mended else ACTION_NEEDED)


def _diagnosis_text(diagnosis: Diagnosis) -> str:
    if not diagnosis.found:
        return "没有发现问题"
    words = {"error": "错误", "warning": "注意", "note": "提示"}
    lines = [f"{'已修复' if f in diagnosis.mended else words[f.level]} {f.path}：{f.text}" for f in diagnosis.found]
    if any(f.mend is not None for f in diagnosis.left) and not diagnosis.mended:
        lines.append("可用 amos doctor --fix 修复")
    return "\n".join(lines)


@amos.command(help="由文件重建 index.json（保留标签）和检索索引")
@_root_option
@_json_option
def reindex(root: Path, as_json: bool) -> None:
    """Make both indexes anew."""
    files = _open(root)

    async def rebuild() -> tuple[int, int]:
        index = Index(files)
        entries = await asyncio.to_thread(index.rebuild)
        searching = Search(files, tags=index.tags_of)
        try:
            return entries, await searching.reindex()
        finally:
            await searching.close()

    entries, indexed = _run("正在重建索引", rebuild())
    text = f"已重建：index.json {entries} 条，检索索引 {indexed} 个文件"
    _show({"entries": entries, "files": indexed}, text, as_json=as_json)


@amos.command(help="根目录的概况：文件数、任务、最近错误、健康检查")
@_root_option
@_json_option
def status(root: Path, as_json: bool) -> None:
    """Snapshot and health."""
    monitor = Monitor(_open(root))

    async def look() -> tuple[Any, Any]:
        return await monitor.snapshot(), await monitor.health()

    seen, health = _run("正在统计", look())
    queue = "，".join(f"{state} {count}" for state, count in seen.task_queue.items())
    troubles = [check for check in health.checks.values() if check != "ok"]
    text = "\n".join(
        [f"文件 {seen.file_count}（{seen.size:,} 字节），用户 {seen.actors}，任务 {queue}",
         f"最近错误：{seen.last_error or '无'}", *(troubles or ["健康检查通过"])]
    )  # fmt: skip
    _show({"snapshot": dataclasses.asdict(seen), "health": dataclasses.asdict(health)}, text, as_json=as_json)
    if troubles:
        sys.exit(ACTION_NEEDED)


def _scope(actor: str | None, agent: str | None) -> Scope:
    if actor is None and agent is not None:
        raise click.UsageError("--agent 需要同时给出 --actor")
    return layout.make_scope(actor or "anonymous", agent)


def main() -> None:
    """The console script."""
    amos(prog_name="amos")
