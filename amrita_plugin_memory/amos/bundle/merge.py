"""Moving what has arrived into the root: planned whole, undone when it fails, finished when it was killed.

A session or an asset stays or goes as one. Moving is renaming; what is replaced is set aside until everything is done.
Blocks.
"""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast

from amrita_plugin_memory.amos.errors import BundleError
from amrita_plugin_memory.amos.ground import bulk, formats
from amrita_plugin_memory.kernel.errors import InvalidInput

from . import policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from amrita_plugin_memory.amos.ground import FileRoot

JOURNAL: Final = PurePosixPath("journal.json")
TREE: Final = "tree"
OLD: Final = "old"
_TAKEN: Final = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
_NO_LINKS: Final = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)


@dataclass(frozen=True, slots=True)
class Move:
    """One file or folder that goes into the root; ``swap`` when something stands there."""

    path: str
    swap: bool


@dataclass(slots=True)
class Plan:
    """Every move, and what becomes of every file."""

    moves: list[Move] = field(default_factory=list[Move])
    added: list[str] = field(default_factory=list[str])
    replaced: list[str] = field(default_factory=list[str])
    kept: list[str] = field(default_factory=list[str])
    same: list[str] = field(default_factory=list[str])


def make_plan(files: FileRoot, tree: Path, *, overwrite: bool) -> Plan:
    """What would be moved.

    Raises:
        BundleError: a folder stands where a file should go, or the other way round, or a link does.

    """
    plan = Plan()
    _plan_folder(files, tree, "", plan, overwrite=overwrite)
    return plan


def _plan_folder(files: FileRoot, tree: Path, rel: str, plan: Plan, *, overwrite: bool) -> None:
    with os.scandir(tree / rel) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = f"{rel}/{entry.name}" if rel else entry.name
        target = _target(files, path)
        is_folder = entry.is_dir(follow_symlinks=False)
        if target is None:
            plan.moves.append(Move(path, swap=False))
            plan.added += _files_of(tree, path)
        elif target.is_dir() != is_folder:
            raise BundleError(f"{path[:80]} 处已有同名的文件或文件夹，无法导入")
        elif is_folder and policy.unit(f"{path}/x") != path:
            _plan_folder(files, tree, path, plan, overwrite=overwrite)
        else:
            _plan_existing(tree, path, target, plan, overwrite=overwrite)


def _plan_existing(tree: Path, path: str, target: Path, plan: Plan, *, overwrite: bool) -> None:
    if _is_same(tree / path, target):
        plan.same += _files_of(tree, path)
    elif not overwrite:
        plan.kept += _files_of(tree, path)
    else:
        plan.moves.append(Move(path, swap=True))
        plan.replaced += _files_of(tree, path)


def _target(files: FileRoot, path: str) -> Path | None:
    try:
        target = files.path(PurePosixPath(path))
    except InvalidInput as error:
        raise BundleError(f"{path[:80]} 处是符号链接，无法导入") from error
    return target if target.exists() else None


def _files_of(tree: Path, path: str) -> list[str]:
    if not (tree / path).is_dir():
        return [path]
    skipped = len(str(tree)) + 1
    found: list[str] = []
    for folder, _, names in os.walk(tree / path):
        below = folder[skipped:].replace(os.sep, "/")
        found += (f"{below}/{name}" if below else name for name in names)
    return sorted(found)


def _is_same(new: Path, old: Path) -> bool:
    if new.is_dir():
        names = _files_of(new, "")
        return names == [n for n in _files_of(old, "") if not policy.is_leftover(n)] and all(
            _is_same(new / name, old / name) for name in names
        )
    return new.stat().st_size == old.stat().st_size and new.read_bytes() == old.read_bytes()


def apply(files: FileRoot, staging: FileRoot, plan: Plan, rest: Mapping[str, Any]) -> list[str]:
    """Make every move of a plan; when one fails all are undone and the error goes on.

    Files that were to be added and found their place taken meanwhile stay out: they are told, and kept in the plan.
    ``rest`` goes into the journal: what is to be done after the moves, for `finish` to give back.
    """
    moves = [[move.path, move.swap] for move in plan.moves]
    staging.write_json(JOURNAL, {"moves": moves, "rest": rest})
    done: list[tuple[int, Move]] = []
    try:
        for number, move in _steps(files, staging.root / TREE, plan.moves):
            done.append((number, move))
            _move(files, staging.root, number, move)
    except BaseException:
        for number, move in reversed(done):
            _undo(files, staging.root, number, move)
        staging.delete(JOURNAL)
        raise
    if files.sync:
        bulk.sync_folders({files.root / Path(move.path).parent for _, move in done})
    kept = _left(staging.root / TREE, plan.moves)
    if kept:
        plan.added = [path for path in plan.added if path not in set(kept)]
        plan.kept += kept
    return kept


@dataclass(frozen=True, slots=True)
class Finished:
    """A killed import whose files have all moved: what is to be done yet, and which files found their place taken."""

    rest: dict[str, Any]
    kept: list[str]


def finish(files: FileRoot, staging: FileRoot) -> Finished | None:
    """Make the moves that a killed import had still to make; None when it had not begun to move.

    Going on loses nothing: what was replaced is still set aside, and what others wrote meanwhile stays.
    """
    data = staging.read(JOURNAL)
    journal = formats.load_object(data) if data else None
    if journal is None:
        return None
    listed = cast("list[list[Any]]", journal.get("moves", []))
    moves = [Move(str(path), swap=bool(swap)) for path, swap in listed]
    for number, move in _steps(files, staging.root / TREE, moves):
        if (staging.root / TREE / move.path).exists():
            _move(files, staging.root, number, move)
    return Finished(cast("dict[str, Any]", journal.get("rest") or {}), _left(staging.root / TREE, moves))


def _steps(files: FileRoot, tree: Path, moves: Sequence[Move]) -> Iterator[tuple[int, Move]]:
    """The moves, each made before the next is asked for; what is in a folder whose place was taken goes one by one."""
    waiting = [*enumerate(moves)][::-1]
    while waiting:
        number, move = waiting.pop()
        yield number, move
        source = tree / move.path
        if move.swap or not source.is_dir() or policy.unit(f"{move.path}/x") == move.path:
            continue
        if files.path(PurePosixPath(move.path)).is_dir():
            inside = sorted(os.listdir(source), reverse=True)  # noqa: PTH208 - names are all that is wanted
            waiting += [(number, Move(f"{move.path}/{name}", swap=False)) for name in inside]


def _left(tree: Path, moves: Sequence[Move]) -> list[str]:
    """What could not go where nothing should have stood: it is still where it arrived."""
    stuck = [move.path for move in moves if not move.swap and (tree / move.path).exists()]
    return [name for path in stuck for name in _files_of(tree, path)]


def _move(files: FileRoot, staging: Path, number: int, move: Move) -> None:
    rel = PurePosixPath(move.path)
    target = files.path(rel)
    aside = staging / OLD / str(number)
    if move.swap and target.exists() and not aside.exists():
        aside.parent.mkdir(mode=0o700, exist_ok=True)
        target.rename(aside)
    if not target.parent.is_dir():
        files.make_dir(rel.parent)
    if move.swap:
        (staging / TREE / move.path).rename(target)
    else:
        _place(staging / TREE / move.path, target)


def _place(source: Path, target: Path) -> None:
    """Move to where nothing stands. Something that has appeared there stays, and then the source stays too."""
    is_folder = source.is_dir()
    try:
        if is_folder:
            source.rename(target)  # which fails where a folder with anything in it stands
        else:
            os.link(source, target)
    except OSError as error:
        if error.errno in _TAKEN:
            if is_folder or not source.samefile(target):  # else it was killed between the two halves of a move
                return
        elif is_folder or error.errno not in _NO_LINKS:
            raise
        elif target.exists():
            return
        else:
            source.rename(target)
    if not is_folder:
        source.unlink(missing_ok=True)


def _undo(files: FileRoot, staging: Path, number: int, move: Move) -> None:
    target, new, aside = files.path(PurePosixPath(move.path)), staging / TREE / move.path, staging / OLD / str(number)
    if not new.exists() and target.exists():
        target.rename(new)
    elif target.is_file() and new.exists() and new.samefile(target):
        target.unlink()
    if aside.exists():
        aside.rename(target)


def discard(staging: Path) -> None:
    """Remove the folder of an import."""
    shutil.rmtree(staging, ignore_errors=True)
