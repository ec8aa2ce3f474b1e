"""The two formats of a package, gzip and tar, read and written as a stream; no path is touched here.

Reading takes the bytes as hostile: what a header claims is checked against the limits before anything is stored, links
and devices are told apart from files, and nothing is ever extracted by a library.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from amrita_plugin_memory.amos.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .limits import Limits

BLOCK: Final = 512
LEVEL: Final = 1
_CHUNK: Final = 1 << 18
_END: Final = bytes(BLOCK)
_FILE: Final = b"0000600\0" + b"0000000\0" * 2  # mode, user, group
_FOLDER: Final = b"0000700\0" + b"0000000\0" * 2
_LATER: Final = bytes(100) + b"ustar\x0000" + bytes(64) + b"0000000\0" * 2
_SUM_OF_LATER: Final = sum(_LATER)
_IF_OWN: Final = "已拒绝，确是自己的备份时可加 --trusted 导入"
_GZIP: Final = 31  # zlib's window size with a gzip header


@dataclass(slots=True)
class Measure:
    """How big a package is that is being written, and whether `unpack` will take it within the limits."""

    limits: Limits
    members: int = 0
    unpacked: int = 2 * BLOCK
    packed: int = 0
    fits: bool = True

    def took(self, name: str, size: int) -> None:
        """A member goes in."""
        self.members += 1
        heads = (
            1 if len(name) * 4 <= 100 else 4
        )  # a long name takes heads of its own; too many are counted, not too few
        self.unpacked += heads * BLOCK + size + -size % BLOCK
        self.fits = self.fits and size <= self.limits.file

    def gave(self, size: int) -> None:
        """Bytes of the package come out."""
        self.packed += size
        limits = self.limits
        odd = self.unpacked > limits.ratio_after and self.unpacked > limits.ratio * self.packed
        beyond = self.members > limits.members or self.unpacked > limits.total or self.packed > limits.compressed
        self.fits = self.fits and not odd and not beyond


@dataclass(frozen=True, slots=True)
class Member:
    """One entry: a file with its bytes, a folder, or anything else (a link, a device) that is only named."""

    name: str
    kind: Literal["file", "folder", "other"]
    data: bytes = b""


# -- writing ----------------------------------------------------------------------------------------------------------


def pack(members: Iterable[tuple[str, bytes, int]], level: int = LEVEL) -> Iterator[bytes]:
    """A gzipped tar of ``(name, bytes, mtime)``; a name that ends in ``/`` is a folder."""
    squeeze = zlib.compressobj(level, zlib.DEFLATED, _GZIP)
    held: list[bytes] = []
    size = 0
    for name, data, mtime in members:
        held += (*_headers(name, len(data), mtime), data, bytes(-len(data) % BLOCK))
        size += len(data) + BLOCK
        if size >= _CHUNK:
            yield squeeze.compress(b"".join(held))
            held, size = [], 0
    yield squeeze.compress(b"".join(held) + bytes(2 * BLOCK))
    yield squeeze.flush()


def _headers(name: str, size: int, mtime: int) -> tuple[bytes, ...]:
    raw = name.encode("utf-8", "surrogateescape")
    prefix, cut = b"", raw
    if len(raw) > 100:
        at = raw.find(b"/", len(raw) - 101)
        prefix, cut = (raw[:at], raw[at + 1 :]) if 0 < at <= 155 else (b"", b"")
    if not cut:  # too long for the old form: a pax record says it, the header only hints
        record = _pax(b"path", raw)
        head = _header(b"PaxHeader", len(record), mtime, kind=b"x")
        return (
            head,
            record,
            bytes(-len(record) % BLOCK),
            _header(raw[:100].rstrip(b"/"), size, mtime, folder=name[-1] == "/"),
        )
    return (_header(cut, size, mtime, prefix=prefix, folder=name[-1] == "/"),)


def _pax(key: bytes, value: bytes) -> bytes:
    body = b" " + key + b"=" + value + b"\n"
    size = len(body) + 1
    while len(str(size)) + len(body) != size:
        size = len(str(size)) + len(body)
    return str(size).encode() + body


def _header(
    name: bytes, size: int, mtime: int, *, prefix: bytes = b"", folder: bool = False, kind: bytes = b"0"
) -> bytes:
    owner, kind = (_FOLDER, b"5") if folder else (_FILE, kind)
    told = b"%011o\0%011o\0" % (size, max(mtime, 0))
    # The checksum is taken with its own field blank; everything that is left out here is zero bytes.
    total = sum(name) + sum(owner) + sum(told) + 8 * 32 + kind[0] + sum(prefix) + _SUM_OF_LATER
    return b"".join(
        (name, bytes(100 - len(name)), owner, told, b"%06o\0 " % total, kind, _LATER, prefix, bytes(167 - len(prefix)))
    )


# -- reading ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Gunzip:
    """What a gzip stream holds, counted against the limits; several gzip members in a row count together."""

    chunks: Iterator[bytes]
    limits: Limits
    _inflate: Any = field(default_factory=lambda: zlib.decompressobj(_GZIP))
    _input: bytes = b""
    _ready: bytes = b""
    _at: int = 0
    _came: int = 0
    _gave: int = 0
    _ended: bool = False

    def read(self, size: int) -> bytes:
        """Exactly ``size`` bytes; fewer only at the end."""
        end = self._at + size
        if end > len(self._ready):
            parts = [self._ready[self._at :]]
            missing = size - len(parts[0])
            while missing > 0 and (data := self._more()) is not None:
                parts.append(data)
                missing -= len(data)
            self._ready, self._at, end = b"".join(parts), 0, size
        taken = self._ready[self._at : end]
        self._at = min(end, len(self._ready))
        return taken

    def _more(self) -> bytes | None:
        if not self._input and not self._next_chunk():
            if self._ended or not self._came:
                return None
            raise BundleError("数据包不完整，可能没有传输完")
        try:
            data: bytes = self._inflate.decompress(self._input, _CHUNK)
        except zlib.error as error:
            raise BundleError("不是有效的 .amos 数据包（gzip 已损坏）") from error
        self._input = self._inflate.unconsumed_tail
        self._ended = self._inflate.eof
        if self._ended:
            rest = self._inflate.unused_data.lstrip(b"\0")
            self._inflate, self._input = zlib.decompressobj(_GZIP), rest
        self._gave += len(data)
        self._check()
        return data

    def _next_chunk(self) -> bool:
        self._input = next(self.chunks, b"")
        self._came += len(self._input)
        if self._came > self.limits.compressed:
            raise BundleError(f"数据包超过 {self.limits.compressed:,} 字节，{_IF_OWN}")
        return bool(self._input)

    def _check(self) -> None:
        if self._gave > self.limits.total:
            raise BundleError(f"数据包解开后超过 {self.limits.total:,} 字节，{_IF_OWN}")
        if self._gave > self.limits.ratio_after and self._gave > self.limits.ratio * self._came:
            raise BundleError(f"数据包的压缩比异常，{_IF_OWN}")


def unpack(chunks: Iterator[bytes], limits: Limits) -> Iterator[Member]:
    """The entries of a package, one at a time.

    Raises:
        BundleError: no gzipped tar, damaged, torn, or beyond a limit.

    """
    stream = _Gunzip(chunks, limits)
    long_name: bytes | None = None
    count = 0
    while True:
        head = stream.read(BLOCK)
        if len(head) < BLOCK:
            raise BundleError("数据包不完整或不是 .amos 数据包")
        if head == _END:
            return
        kind, size = head[156:157], _checked_size(head)
        if kind in (b"x", b"g", b"L", b"K"):
            if size > limits.header:
                raise BundleError("数据包的文件头过长，已拒绝")
            record = _body(stream, size)
            long_name = _long_name(kind, record) or long_name
            continue
        count += 1
        if count > limits.members:
            raise BundleError(f"数据包里的文件超过 {limits.members:,} 个，{_IF_OWN}")
        name, long_name = _decoded(long_name or _short_name(head)), None
        yield _member(stream, name, kind, size)


def _member(stream: _Gunzip, name: str, kind: bytes, size: int) -> Member:
    if kind in (b"0", b"\0", b"7") and not name.endswith("/"):
        if size > stream.limits.file:
            raise BundleError(f"数据包里有文件超过 {stream.limits.file:,} 字节，{_IF_OWN}")
        return Member(name, "file", _body(stream, size))
    if kind == b"5" or name.endswith("/"):
        return Member(name, "folder")
    return Member(name, "other")


def _body(stream: _Gunzip, size: int) -> bytes:
    data = stream.read(size + -size % BLOCK)
    if len(data) < size:
        raise BundleError("数据包不完整，可能没有传输完")
    return data[:size]


def _checked_size(head: bytes) -> int:
    stored = head[148:156]
    total = sum(head.translate(None, b"\0")) - sum(stored) + 8 * 32
    try:
        if int(stored.strip(b"\0 "), 8) != total:
            raise BundleError("数据包已损坏（文件头校验不符）")
        return int(head[124:136].strip(b"\0 ") or b"0", 8)
    except ValueError:
        raise BundleError("数据包已损坏（文件头无法读取）") from None


def _short_name(head: bytes) -> bytes:
    name, prefix = head[:100].rstrip(b"\0"), head[345:500].rstrip(b"\0")
    return prefix + b"/" + name if prefix and head[257:262] == b"ustar" and head[263:265] == b"00" else name


def _long_name(kind: bytes, record: bytes) -> bytes | None:
    if kind == b"L":
        return record.rstrip(b"\0")
    if kind != b"x":
        return None
    found: bytes | None = None
    while record:
        length, _, _ = record.partition(b" ")
        if not length.isdigit() or not 0 < int(length) <= len(record):
            raise BundleError("数据包已损坏（扩展文件头无法读取）")
        key, _, value = record[len(length) + 1 : int(length) - 1].partition(b"=")
        if key == b"path":
            found = value
        elif key == b"size":
            raise BundleError("数据包里有超大文件，已拒绝")
        record = record[int(length) :]
    return found


def _decoded(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise BundleError("数据包里有无法识别的文件名，已拒绝") from None
