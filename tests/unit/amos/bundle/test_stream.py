from __future__ import annotations

import contextlib
import gzip
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amrita_plugin_memory.amos.bundle import Limits, stream
from amrita_plugin_memory.amos.errors import BundleError


def tar(*members: tarfile.TarInfo | tuple[str, bytes], fmt: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=fmt) as archive:
        for member in members:
            info = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member[0])
            data = b"" if isinstance(member, tarfile.TarInfo) else member[1]
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def read(data: bytes, limits: Limits | None = None, step: int = 700) -> list[stream.Member]:
    chunks = (data[at : at + step] for at in range(0, len(data), step))
    return list(stream.unpack(chunks, limits or Limits()))


NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=300).map(
    lambda name: name.strip("/") or "x"
)


@given(st.lists(st.tuples(NAMES, st.binary(max_size=2000)), max_size=6))
def test_what_is_packed_is_unpacked_by_us_and_by_tarfile(files: list[tuple[str, bytes]]) -> None:
    packed = b"".join(stream.pack((name, data, 1_700_000_000) for name, data in files))
    assert [(member.name, member.data) for member in read(packed)] == files
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
        theirs = [(member.name, (archive.extractfile(member) or io.BytesIO()).read()) for member in archive]
    assert theirs == [(name, data) for name, data in files]


@pytest.mark.parametrize("fmt", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("name", ["a", "目录/" * 20 + "文件.md", "x/" * 60 + "y" * 90])
def test_packages_of_others_are_read(fmt: int, name: str) -> None:
    assert read(tar((name, b"data"), fmt=fmt)) == [stream.Member(name, "file", b"data")]


def test_links_and_devices_are_told_apart_and_their_bytes_never_read() -> None:
    kinds = []
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        info = tarfile.TarInfo("x")
        info.type, info.linkname = kind, "/etc/passwd"
        kinds += [member.kind for member in read(tar(info))]
    assert kinds == ["other"] * 4


@pytest.mark.parametrize(
    ("limits", "members"),
    [
        (Limits(file=10), [("a", b"x" * 11)]),
        (Limits(members=2), [("a", b""), ("b", b""), ("c", b"")]),
        (Limits(total=4096), [("a", b"x" * 5000)]),
        (Limits(compressed=20), [("a", b"x")]),
        (Limits(ratio_after=1000, ratio=5), [("a", bytes(900_000))]),
        (Limits(header=100), [("n" * 2000, b"")]),
    ],
)
def test_what_is_too_big_is_refused(limits: Limits, members: list[tuple[str, bytes]]) -> None:
    with pytest.raises(BundleError):
        read(tar(*members), limits)


def test_two_hundred_megabytes_of_zeros_are_refused_long_before_they_are_unpacked() -> None:
    header = gzip.decompress(tar(("a", bytes(30 * 1024 * 1024))))[:512]
    bomb = gzip.compress(header + bytes(30 * 1024 * 1024)) * 7
    with pytest.raises(BundleError, match="压缩比"):
        read(bomb, step=100_000)
    stored = gzip.compress(header + bytes(30 * 1024 * 1024), compresslevel=0) * 2
    with pytest.raises(BundleError, match="解开后"):
        read(stored, Limits(total=40 * 1024 * 1024), step=1_000_000)


def test_a_hundred_thousand_small_files_are_within_the_limits() -> None:
    packed = b"".join(stream.pack((f"{number}.md", b"x", 0) for number in range(100_000)))
    assert sum(1 for _ in stream.unpack(iter([packed]), Limits())) == 100_000


@pytest.mark.parametrize("harm", ["empty", "text", "torn", "flipped", "no end"])
def test_a_damaged_package_is_refused(harm: str) -> None:
    whole = tar(("a", b"x" * 5000), ("b", b"y" * 5000))
    harmed = {
        "empty": b"",
        "text": b"this is no package at all",
        "torn": whole[: len(whole) // 2],
        "flipped": whole[:60] + bytes([whole[60] ^ 0xFF]) + whole[61:],
        "no end": gzip.compress(gzip.decompress(whole)[:5632]),
    }[harm]
    with pytest.raises(BundleError):
        read(harmed)


@given(st.binary(max_size=3000))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for attempt in (data, gzip.compress(data), gzip.compress(data.ljust(1024, b"\0"))):
        with contextlib.suppress(BundleError):
            read(attempt)
