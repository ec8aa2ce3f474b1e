"""Reading a package into a folder of its own, before anything of the root is touched. Blocks."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from amrita_plugin_memory.amos.errors import BundleError, ProtocolVersionError
from amrita_plugin_memory.amos.ground import bulk, formats
from amrita_plugin_memory.kernel.errors import shorten

from . import policy, rewrite, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from .reports import ImportOptions

EntryOf: TypeAlias = "Callable[[Sequence[str], str], dict[str, Any] | None]"
PROTOCOL: Final = "2.0.0"


@dataclass
class Arrived:
    """A package that was read: its root files in memory, everything else below ``tree``.

    ``entries`` are what the index is to say of its files, made from what came and not from what the package says.
    """

    tree: bulk.NewTree
    entry_of: EntryOf | None = None
    entries: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])
    root_files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    paths: list[str] = field(default_factory=list[str])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    drafts: list[str] = field(default_factory=list[str])
    verified: bool = False
    sums: dict[str, str] = field(default_factory=dict[str, str])  # of everything that came, by its name there

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest of the package."""
        return formats.load_object(self.root_files["manifest.json"]) or {}

    @cached_property
    def actors(self) -> tuple[str, ...]:
        """Users of the package, under the names they get here; asked for when all files have come."""
        return tuple(dict.fromkeys(path.split("/", 2)[1] for path in self.paths if path.startswith("users/")))


def read(
    package: Path, staging: Path, options: ImportOptions, *, sync: bool, entry_of: EntryOf | None = None
) -> Arrived:
    """Read, judge and store a package below ``staging``; ``entry_of`` makes a file's entry of the index.

    Raises:
        BundleError: no package, damaged, beyond a limit, or with a name that tries to leave its place.
        ProtocolVersionError: of another version of the protocol.

    """
    staging.mkdir(mode=0o700)
    arrived = Arrived(bulk.NewTree(staging, sync), entry_of)
    gate = policy.Gate(options.bounds, options.actor_mapping, options.trust_acl)
    try:
        for member in stream.unpack(bulk.read_chunks(package), options.bounds):
            _take(arrived, gate, member, options)
    except FileNotFoundError:
        raise BundleError("找不到这个数据包，请核对路径") from None
    except IsADirectoryError:
        raise BundleError("这是一个文件夹，不是 .amos 数据包") from None
    except (FileExistsError, NotADirectoryError):
        raise BundleError("数据包里有两个文件占用同一位置，已拒绝") from None
    _check_protocol(arrived)
    _check_sums(arrived)
    _drop_strangers_tasks(arrived)
    if not options.trust_tools:
        _draft_bare_tools(arrived)
    arrived.tree.settle()
    return arrived


def _take(arrived: Arrived, gate: policy.Gate, member: stream.Member, options: ImportOptions) -> None:
    if member.kind != "file":
        if member.name.strip("./") or member.kind == "other":
            policy.safe_parts(member.name, options.bounds)
        if member.kind == "other":
            arrived.skipped[member.name] = "链接或特殊文件"
        return
    where = gate.judge(member.name)
    name = where.name
    arrived.sums[name] = hashlib.sha256(member.data).hexdigest()
    if where.path is None:
        arrived.skipped[name] = where.why
    elif "/" not in where.path:
        arrived.root_files[where.path] = member.data
    else:
        _store(arrived, where.path, member.data, options)


def _store(arrived: Arrived, path: str, data: bytes, options: ImportOptions) -> None:
    stored = rewrite.incoming(path, data, options.actor_mapping, trust_tools=options.trust_tools)
    if path.startswith("tasks/running/"):
        path = path.replace("running", "pending", 1)
    arrived.tree.write(path, stored)
    arrived.paths.append(path)
    if arrived.entry_of is not None and path.endswith((".md", ".json")):
        entry = arrived.entry_of(path.split("/"), formats.decode(stored))
        if entry is not None:
            arrived.entries[path] = entry
    unit = None if options.trust_tools else policy.unit(path)
    if unit and policy.is_code(unit) and unit not in arrived.drafts:
        arrived.drafts.append(unit)


def _check_protocol(arrived: Arrived) -> None:
    version = arrived.root_files.get("version.txt")
    if version is None or "manifest.json" not in arrived.root_files:
        raise BundleError("数据包缺少 version.txt 或 manifest.json，不是完整的 .amos 数据包")
    text = formats.decode(version).strip()
    if text != PROTOCOL:
        raise ProtocolVersionError(f"数据包的协议版本是 {shorten(text)}，这里只支持 {PROTOCOL}")
    if formats.load_object(arrived.root_files["manifest.json"]) is None:
        raise BundleError("数据包的 manifest.json 已损坏")


def _check_sums(arrived: Arrived) -> None:
    stored = arrived.root_files.get(policy.CHECKSUMS)
    if stored is None:
        return
    listed = (formats.load_object(stored) or {}).get("files")
    found = {name: digest for name, digest in arrived.sums.items() if name != policy.CHECKSUMS}
    if not isinstance(listed, dict) or cast("dict[str, object]", listed) != found:
        raise BundleError("数据包的内容与其校验清单不符，可能已损坏或被改动")
    arrived.verified = True


def _drop_strangers_tasks(arrived: Arrived) -> None:
    actors = set(arrived.actors)
    for path in [path for path in arrived.paths if path.startswith("tasks/")]:
        data = (arrived.tree.root / path).read_bytes()
        if not rewrite.task_actors(data) <= actors:
            (arrived.tree.root / path).unlink()
            arrived.paths.remove(path)
            arrived.skipped[path] = "任务属于数据包以外的用户"


def _draft_bare_tools(arrived: Arrived) -> None:
    have = set(arrived.paths)
    for unit in arrived.drafts:
        path = f"{unit}/metadata.json"
        if path not in have:
            arrived.tree.write(path, formats.dump_json(rewrite.draft({})))
            arrived.paths.append(path)
