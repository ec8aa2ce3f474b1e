"""What can be wrong inside a file, and its mended form. Pure: bytes in, bytes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amrita_plugin_memory.amos.ground import formats

if TYPE_CHECKING:
    from collections.abc import Mapping

_SPLITTERS: Final = tuple(sign.encode() for sign in ("\u2028", "\u2029", "\x85"))


@dataclass(frozen=True, slots=True)
class Mended:
    """``faults`` in words; ``data`` is the file without them; ``lost`` are lines no reader can use."""

    faults: tuple[str, ...]
    data: bytes
    lost: tuple[bytes, ...] = ()


def lines(data: bytes) -> Mended | None:
    """A JSONL file; None when nothing is wrong with it."""
    faults = _text_faults(data)
    found = formats.load_lines(data)
    lost = tuple(line.raw for line in found if line.record is None)
    torn = bool(lost) and bool(data) and not data.endswith(b"\n") and found[-1].record is None
    if torn:
        faults.append("末行被截断")
    if len(lost) > torn:
        faults.append(f"{len(lost) - torn} 行不是 JSON 对象")
    if any(sign in data for sign in _SPLITTERS):
        faults.append("含有其他实现会误当作换行的字符")
    if not faults:
        return None
    return Mended(tuple(faults), formats.dump_lines(line.record for line in found if line.record is not None), lost)


def text(data: bytes) -> Mended | None:
    """A text file; None when nothing is wrong with it."""
    faults = _text_faults(data)
    return Mended(tuple(faults), formats.encode(formats.decode(data))) if faults else None


def versions(data: bytes) -> Mended | None:
    """``cache_version.txt``; None when nothing is wrong with it."""
    found = formats.load_object(data)
    good = {key: number for key, number in (found or {}).items() if type(number) is int}
    if found is not None and good == found and not data.startswith(formats.BOM):
        return None
    return Mended(("不是由整数组成的 JSON 对象",), formats.dump_json(good))


def manifest(data: bytes | None, default: Mapping[str, Any]) -> Mended | None:
    """``manifest.json``; None when it has what every reader needs."""
    found = formats.load_object(data or b"")
    if found is None:
        return Mended(
            ("缺失" if data is None else "不是 JSON 对象",), formats.dump_json(default), (data,) if data else ()
        )
    missing = [key for key in ("amos_version", "name", "author") if key not in found]
    if not missing:
        return None
    return Mended((f"缺少 {'、'.join(missing)}",), formats.dump_json({**{k: default[k] for k in missing}, **found}))


def _text_faults(data: bytes) -> list[str]:
    faults = ["开头有 BOM"] if data.startswith(formats.BOM) else []
    try:
        data.decode()
    except UnicodeDecodeError:
        faults.append("含有无效的 UTF-8 字节")
    return faults
