"""Search: keep the index in step with the files, ask it, order what it finds.

One object serves a whole root and every scope; what a scope may not see is left out by the index itself, by whole
owners. All work on the disk is done in worker threads, one at a time.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from amrita_plugin_memory.kernel.clock import Clock, SystemClock
from amrita_plugin_memory.kernel.errors import AmritaMemoryError, Locked

from . import ask, hits, places, store
from .hits import RetrieveOptions, SearchAllHit, SearchHit, SearchOptions
from .upkeep import Upkeep, is_busy, is_damage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import PurePosixPath

    from amrita_plugin_memory.amos.ground import FileRoot
    from amrita_plugin_memory.kernel.scope import Scope

CANDIDATES: Final = 64
SLICE: Final = 0.2  # seconds of indexing at a time while searches may be waiting
T = TypeVar("T")
_PREFIX: Final = ("soul", "profile")  # in every prompt anyway, never injected again
_log = logging.getLogger("amrita_memory.amos")


def no_tags(path: str) -> tuple[str, ...]:
    """The tags of a file when nobody keeps any."""
    return ()


@dataclass(slots=True)
class Search:
    """Full-text search over the files of one root.

    ``tags`` gives the tags of a file by its relative path; it is called when the file is indexed, in a worker thread.
    """

    files: FileRoot
    tags: Callable[[str], Sequence[str]] = no_tags
    clock: Clock = field(default_factory=SystemClock)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False)
    _upkeep: Upkeep = field(init=False)
    _catching_up: asyncio.Task[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._upkeep = Upkeep(self.files, self.clock, self.tags)

    async def search(
        self, scope: Scope, text: str, top_k: int = 5, options: SearchOptions | None = None
    ) -> list[SearchHit]:
        """Memory that answers ``text`` for this scope, best first, at most one hit a file.

        Raises:
            InvalidInput: a ``top_k`` that is negative or no integer.
            Locked: another process holds the index for longer than `store.BUSY` seconds.

        """
        wish = ask.make_wish(scope, text, top_k, options or SearchOptions())
        return [ask.as_hit(found, wish) for found in await self._ask(wish)]

    async def search_all(
        self, scope: Scope, text: str, top_k: int = 5, options: SearchOptions | None = None
    ) -> list[SearchAllHit]:
        """Memory, archives and (with scope "all") assets that answer ``text``, best first."""
        options = options or SearchOptions()
        wish = ask.make_wish(scope, text, top_k, options)
        if options.scope == "all":
            wish = replace(wish, types=(*wish.types, *ask.ASSETS))
        return [ask.as_any(found, wish) for found in await self._ask(wish)]

    async def search_assets(
        self,
        scope: Scope,
        text: str,
        asset_type: str | None = None,
        *,
        top_k: int = 5,
        include_deprecated: bool = False,
    ) -> list[SearchAllHit]:
        """Tools, pages and apps that answer ``text``; drafts and deprecated ones only when asked for."""
        wish = ask.make_wish(scope, text, top_k, SearchOptions())
        types = ask.ASSETS if asset_type is None else (asset_type,)
        wish = replace(wish, types=types, deprecated=include_deprecated)
        return [ask.as_any(found, wish) for found in await self._ask(wish)]

    async def retrieve(self, scope: Scope, text: str, options: RetrieveOptions | None = None) -> list[SearchHit]:
        """What is worth injecting: all but the scope's own running session and what every prompt holds anyway."""
        options = options or RetrieveOptions()
        wish = ask.make_wish(scope, text, options.top_k, SearchOptions(min_score=options.min_score))
        wish = replace(
            wish,
            types=tuple(kind for kind in wish.types if kind not in _PREFIX),
            by_piece=True,
            without_session=store.session_word(places.owners(scope)[0], scope.session),
        )
        return [ask.as_hit(found, wish) for found in await self._ask(wish)]

    async def retrieve_text(self, scope: Scope, text: str, options: RetrieveOptions | None = None) -> str | None:
        """`retrieve`, rendered in the inject mode of the options; None when nothing was found."""
        options = options or RetrieveOptions()
        return hits.render(await self.retrieve(scope, text, options), options.inject_mode)

    def changed(self, path: str | PurePosixPath) -> None:
        """Say that a file was written, tagged or deleted; cheap, from any thread."""
        self._upkeep.mark(str(path))

    async def reindex(self) -> int:
        """Begin the index anew from the files of every owner; how many files it holds afterwards."""
        return await asyncio.to_thread(self._locked, self._upkeep.rebuild)

    async def close(self) -> None:
        """Close the index file."""
        if self._catching_up is not None:
            self._catching_up.cancel()
            await asyncio.wait([self._catching_up])
        await asyncio.to_thread(self._locked, self._upkeep.close)

    async def _ask(self, wish: ask.Wish) -> list[ask.Found]:
        if wish.query.empty or wish.top_k == 0:
            return []
        answer = await asyncio.to_thread(self._locked, lambda: self._answer(wish))
        if self._upkeep.is_behind and (self._catching_up is None or self._catching_up.done()):
            self._catching_up = asyncio.get_running_loop().create_task(self._catch_up(), name="amos-index")
        return answer

    async def _catch_up(self) -> None:
        while self._upkeep.is_behind:
            try:
                await asyncio.to_thread(self._locked, lambda: self._upkeep.catch_up(SLICE))
            except (AmritaMemoryError, OSError, sqlite3.Error) as error:
                _log.warning("indexing goes on with the next search: %s", type(error).__name__)
                return
            await asyncio.sleep(0)

    def _answer(self, wish: ask.Wish) -> list[ask.Found]:
        index = self._upkeep.fresh(places.owners(wish.scope))
        terms = wish.query.strong
        counts = index.frequencies(terms) if terms else {}
        found: list[ask.Found] = []
        for chosen in ask.tries(wish.query, counts):
            found = _best(index, wish, chosen, counts)
            if len(found) >= wish.top_k:
                break
        return found

    def _locked(self, work: Callable[[], T]) -> T:
        with self._lock:
            try:
                return work()
            except sqlite3.DatabaseError as error:
                if is_busy(error):
                    raise Locked("检索索引正被其他进程写入，请稍后再试") from error
                if not is_damage(error):
                    raise
                _log.warning("search index failed and is begun anew: %s", error)
                self._upkeep.destroy()
                return work()


def _best(index: store.Store, wish: ask.Wish, terms: Sequence[str], counts: dict[str, int]) -> list[ask.Found]:
    limit = max(CANDIDATES, 4 * wish.top_k)
    shelves, whole = ask.shelves(wish), ask.expression(wish, terms)
    named = ask.expression(wish, terms, named=True) if terms else ""
    most = sum(counts.get(term, 0) for term in terms) if terms else store.RANKED + 1
    while True:
        rows = [index.find(shelf, whole, limit, by_file=wish.one_of_each_file, most=most) for shelf in shelves]
        by_name = [index.find(shelf, named, CANDIDATES) for shelf in shelves] if named else []
        found = ask.order(wish, [row for part in (*rows, *by_name) for row in part], counts, index.size())
        if len(found) >= wish.top_k or all(len(part) < limit for part in rows):
            return found[: wish.top_k]
        limit *= 8
