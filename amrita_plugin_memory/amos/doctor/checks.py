"""What the doctor looks at: each check yields what it found, with the way to mend it when there is one. Blocks."""

from __future__ import annotations

import os
import stat as stat_bits
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from amrita_plugin_memory.amos.acl import rules
from amrita_plugin_memory.amos.bundle import PortabilityManager
from amrita_plugin_memory.amos.facade import Manifest
from amrita_plugin_memory.amos.ground import formats, holders, layout, names
from amrita_plugin_memory.amos.memory import Index
from amrita_plugin_memory.amos.search.store import destroy, is_sound
from amrita_plugin_memory.amos.search.upkeep import INDEX_FILE
from amrita_plugin_memory.amos.tasks import record
from amrita_plugin_memory.amos.tasks.queue import Queue
from amrita_plugin_memory.kernel.clock import SystemClock
from amrita_plugin_memory.kernel.errors import Corrupt, InvalidInput

from . import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from amrita_plugin_memory.amos.ground import FileRoot

Level: TypeAlias = Literal["error", "warning", "note"]
OLD_TEMP: Final = 60.0  # seconds
DAMAGED: Final = layout.LOGS / "damaged-lines.log"
_PROTOCOL: Final = "2.0.0"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be; ``mend`` puts it right, None when only a person can."""

    code: str
    path: str
    text: str
    level: Level = "error"
    mend: Callable[[], object] | None = None


def everything(files: FileRoot) -> Iterator[Finding]:
    """Every check, in the order in which mending makes sense."""
    for check in (leftovers, locks, heads, contents, access, tasks, index, search, named, modes):
        yield from check(files)


def leftovers(files: FileRoot) -> Iterator[Finding]:
    """Temp files of crashed writers, folders of killed imports."""
    bundles = PortabilityManager(files, Index(files))
    for folder in bundles.leftovers():
        yield Finding("import-left", folder.name, "上次导入中断", mend=bundles.recover_now)
    horizon = time.time() - OLD_TEMP
    for path in _walk(files.root):
        if path.name.endswith(".tmp") and path.lstat().st_mtime < horizon:
            yield Finding("temp-left", _rel(files, path), "写入中断留下的临时文件", "warning", path.unlink)


def locks(files: FileRoot) -> Iterator[Finding]:
    """Locks whose holder is gone."""
    for path in _walk(files.root):
        if path.name.endswith(".lock") and "assets" not in path.parts and holders.is_abandoned(path):
            mend = _bound(holders.clear_if_abandoned, path)
            yield Finding("lock-left", _rel(files, path), "持有者已退出的锁", "warning", mend)


def heads(files: FileRoot) -> Iterator[Finding]:
    """``version.txt``, ``manifest.json`` and ``cache_version.txt``."""
    raw = files.read(layout.VERSION)
    version = formats.decode(raw or b"").strip()
    if version not in ("", _PROTOCOL):
        yield Finding("version", str(layout.VERSION), f"协议版本是 {version[:20]!r}，不是 {_PROTOCOL}，需要人工处理")
    elif not version or (raw or b"").startswith(formats.BOM):
        mend = _bound(files.write_text, layout.VERSION, _PROTOCOL)
        yield Finding("version", str(layout.VERSION), "缺失、为空或开头有 BOM", mend=mend)
    manifest = files.read(layout.MANIFEST)
    yield from _mended(files, layout.MANIFEST, texts.manifest(manifest, Manifest().to_dict()), "manifest")
    counts = files.read(layout.CACHE_VERSION)
    yield from _mended(files, layout.CACHE_VERSION, texts.versions(counts or b""), "cache-version")


def contents(files: FileRoot) -> Iterator[Finding]:
    """Transcripts and notes that some reader would stumble over."""
    for top in (layout.SHARED, layout.USERS):
        for path in _texts(files, top):
            data = files.read(path)
            if data is None:
                continue
            mended = texts.lines(data) if path.suffix == ".jsonl" else texts.text(data)
            yield from _mended(files, path, mended, "torn-lines" if path.suffix == ".jsonl" else "bad-text")


def access(files: FileRoot) -> Iterator[Finding]:
    """Access lists that cannot be read, which deny everything."""
    own = [layout.USERS / actor / "acl.json" for actor in files.dirs(layout.USERS)]
    for path in (layout.GLOBAL_ACL, *own):
        data = files.read(path)
        if data is None:
            continue
        try:
            rules.read(formats.load_json(data))
        except InvalidInput as error:
            yield Finding("acl", str(path), f"{error}（现在一律拒绝访问）")


def tasks(files: FileRoot) -> Iterator[Finding]:
    """Task files that are none, and tasks nobody runs any more."""
    queue, now = Queue(files), SystemClock().now()
    for status in layout.TASK_STATES:
        for task_id in queue.ids(status):
            path = layout.TASKS / status / f"task_{task_id}.json"
            try:
                task = record.decode(files.read_text(path) or "", task_id)
            except Corrupt:
                yield Finding("task-corrupt", str(path), "任务文件已损坏", mend=_bound(queue.read, status, task_id))
                continue
            if status == "running" and queue.is_orphan(task, now):
                yield Finding("task-orphan", str(path), "执行者已退出的任务", mend=_bound(queue.recover, now))


def index(files: FileRoot) -> Iterator[Finding]:
    """``index.json`` that cannot be read or speaks of files that are gone."""
    data = files.read(layout.INDEX)
    if not data:
        return
    found = formats.load_object(data)
    if found is None:
        yield Finding("index", str(layout.INDEX), "索引已损坏", mend=_bound(_rebuild_index, files))
        return
    gone = [path for path in found if path.startswith(("users/", "shared/")) and not _is_file(files, path)]
    if gone:
        text = f"索引里有 {len(gone)} 个已不存在的文件"
        yield Finding("index", str(layout.INDEX), text, "warning", _bound(_rebuild_index, files))


def search(files: FileRoot) -> Iterator[Finding]:
    """A search index that cannot be used."""
    path = files.path(INDEX_FILE)
    if path.exists() and not is_sound(path):
        yield Finding("search-index", str(INDEX_FILE), "检索索引已损坏，删除后会自动重建", mend=_bound(destroy, path))


def named(files: FileRoot) -> Iterator[Finding]:
    """Names no caller can use, names that fall together on other disks, links."""
    for path in _walk(files.root, links=True):
        if path.is_symlink():
            yield Finding("link", _rel(files, path), "符号链接，读写时一律不跟随", "warning")
    folded: defaultdict[str, list[str]] = defaultdict(list)
    for entry in files.scan(layout.USERS):
        if not names.is_component(entry.name):
            yield Finding("name", f"users/{entry.name}", "名称不可用，无法通过接口访问", "warning")
        folded[names.fold(entry.name)].append(entry.name)
    for same in folded.values():
        if len(same) > 1:
            yield Finding("name", "users", f"{'、'.join(same)} 在 Windows 和 macOS 上会混为一个目录", "note")


def modes(files: FileRoot) -> Iterator[Finding]:
    """Files and folders that others on this machine could read."""
    if os.name == "nt":
        return
    open_ones = [path for path in (files.root, *_walk(files.root, folders=True)) if path.stat().st_mode & 0o077]
    if open_ones:
        text = f"{len(open_ones)} 个文件或目录可被其他用户读取"
        yield Finding("modes", ".", text, "warning", _bound(_close_all, open_ones))


def _mended(files: FileRoot, path: PurePosixPath, mended: texts.Mended | None, code: str) -> Iterator[Finding]:
    if mended is not None:
        yield Finding(code, str(path), "；".join(mended.faults), mend=_bound(_rewrite, files, path, code))


def _rewrite(files: FileRoot, path: PurePosixPath, code: str) -> None:
    with files.lock(path):
        data = files.read(path)
        if code == "manifest":
            mended = texts.manifest(data, Manifest().to_dict())
        else:
            judge = {"torn-lines": texts.lines, "bad-text": texts.text, "cache-version": texts.versions}[code]
            mended = judge(data or b"")
        if mended is None:
            return
        if mended.lost:
            with files.lock(DAMAGED):
                for line in mended.lost:
                    files.append(DAMAGED, f"{path}\t".encode() + line.replace(b"\n", b" ") + b"\n")
        files.write(path, mended.data)


def _rebuild_index(files: FileRoot) -> None:
    data = files.read(layout.INDEX)
    if data and formats.load_object(data) is None:
        files.move(layout.INDEX, layout.INDEX.with_name("index.json.bak"))
    Index(files).rebuild()


def _close_all(paths: list[Path]) -> None:
    for path in paths:
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() else 0o600)


def _texts(files: FileRoot, top: PurePosixPath) -> Iterator[PurePosixPath]:
    for path in files.walk(top):
        if path.suffix in (".md", ".jsonl") and "assets" not in path.parts:
            yield path


def _walk(root: Path, *, folders: bool = False, links: bool = False) -> Iterator[Path]:
    for folder, below, found in os.walk(root):
        for name in found + (below if folders or links else []):
            path = Path(folder, name)
            if stat_bits.S_ISLNK(path.lstat().st_mode):
                if links:
                    yield path
            elif not links:
                yield path


def _is_file(files: FileRoot, path: str) -> bool:
    try:
        return files.exists(layout.relative(path))
    except InvalidInput:
        return False


def _rel(files: FileRoot, path: Path) -> str:
    return path.relative_to(files.root).as_posix()


def _bound(work: Callable[..., object], *args: object) -> Callable[[], object]:
    return lambda: work(*args)
