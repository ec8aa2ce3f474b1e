"""Moving what has arrived into the root: planned whole, undone when it fails, finished when it was killed.

A session or an asset stays or goes as one. Moving is renaming; what is replaced is set aside until everything is done.
Blocks.
"""

from __future__ import annotations

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
    from amrita_plugin_memory.amos.ground import FileRoot

JOURNAL: Final = PurePosixPath("journal.json")
TREE: Final = "tree"
OLD: Final = "old"


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


def apply(files: FileRoot, staging: FileRoot, plan: Plan) -> None:
    """Make every move of a plan; when one fails all are undone and the error goes on."""
    staging.write_json(JOURNAL, {"moves": [[move.path, move.swap] for move in plan.moves]})
    done: list[tuple[int, Move]] = []
    try:
        for number, move in enumerate(plan.moves):
            done.append((number, move))
            _move(files, staging.root, number, move)
    except BaseException:
        for number, move in reversed(done):
            _undo(files, staging.root, number, move)
        staging.delete(JOURNAL)
        raise
    if files.sync:
        bulk.sync_folders({files.root / Path(move.path).parent for move in plan.moves})


def finish(files: FileRoot, staging: FileRoot) -> bool:
    """Make the moves that a killed import had still to make; False when it had not begun to move.

    Going on loses nothing: what was replaced is still set aside, and what others wrote meanwhile stays.
    """
    data = staging.read(JOURNAL)
    journal = formats.load_object(data) if data else None
    if journal is None:
        return False
    for number, listed in enumerate(cast("list[list[Any]]", journal.get("moves", []))):
        move = Move(str(listed[0]), swap=bool(listed[1]))
        if (staging.root / TREE / move.path).exists():
            target = _target(files, move.path)
            if target is None or move.swap:
                _move(files, staging.root, number, move)
    return True


def _move(files: FileRoot, staging: Path, number: int, move: Move) -> None:
    rel = PurePosixPath(move.path)
    target = files.path(rel)
    aside = staging / OLD / str(number)
    if move.swap and target.exists() and not aside.exists():
        aside.parent.mkdir(mode=0o700, exist_ok=True)
        target.rename(aside)
    if not target.parent.is_dir():
        files.make_dir(rel.parent)
    (staging / TREE / move.path).rename(target)


def _undo(files: FileRoot, staging: Path, number: int, move: Move) -> None:
    target, new, aside = files.path(PurePosixPath(move.path)), staging / TREE / move.path, staging / OLD / str(number)
    if not new.exists() and target.exists():
        target.rename(new)
    if aside.exists():
        aside.rename(target)


def discard(staging: Path) -> None:
    """Remove the folder of an import."""
    shutil.rmtree(staging, ignore_errors=True)
