"""A search from wish to answer, without the disk. Pure: values in, values out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from amrita_plugin_memory.amos.ground import uris
from amrita_plugin_memory.kernel.clock import parse_iso

from . import content, hits, places, query, rank, store
from .hits import SearchAllHit, SearchHit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amrita_plugin_memory.kernel.scope import Scope

TELLING: Final = 1_500  # pieces the rarest terms may bring before the commoner ones are left out of the first try
ASSETS: Final = ("tool", "page", "app")
EVERY: Final = hits.TYPES["all"]
_MOST_TYPES: Final = 2


@dataclass(frozen=True, slots=True)
class Wish:
    """One search, ready to be run; ``since`` is aware, ``without_session`` is a `store.session_word`."""

    scope: Scope
    query: query.Query
    types: tuple[str, ...]
    top_k: int
    min_score: float = 0.0
    since: datetime | None = None
    without_session: str | None = None
    deprecated: bool = False
    by_piece: bool = False  # several exchanges of one talk are several hits

    @property
    def one_of_each_file(self) -> bool:
        """True when the best piece of a file may stand for it, as no condition looks at pieces."""
        return not (self.by_piece or self.since or self.query.phrases)


@dataclass(frozen=True, slots=True)
class Found:
    """A piece that answers, with the terms found in it."""

    row: store.Row
    score: float
    terms: tuple[str, ...]


def make_wish(scope: Scope, text: str, top_k: int, options: hits.SearchOptions) -> Wish:
    """A wish from what a caller gave.

    Raises:
        InvalidInput: a ``top_k`` that is negative or no integer.

    """
    since = options.since
    return Wish(
        scope=scope,
        query=query.parse(text, options.exact_phrases),
        types=hits.TYPES[options.scope],
        top_k=hits.check_top_k(top_k),
        min_score=options.min_score,
        since=None if since is None else since.astimezone(UTC),
    )


def tries(asked: query.Query, counts: Mapping[str, int]) -> Sequence[Sequence[str]]:
    """Which terms to look up: first the rarest, as many as together bring a good choice; then all that occur.

    Ranking costs microseconds for each piece, and a piece with none of the rare terms seldom ranks among the first.
    Phrases decide alone, in one try; when no term occurs anywhere there is none.
    """
    terms = asked.strong
    if not terms or any(query.match_phrase(phrase) for phrase in asked.phrases):
        return ((),)
    known = sorted((term for term in terms if counts.get(term)), key=lambda term: counts[term])
    if not known:
        return ()
    chosen, total = known[:1], counts[known[0]]
    for term in known[1:]:
        total += counts[term]
        if total > TELLING:
            break
        chosen.append(term)
    return (chosen,) if len(chosen) == len(known) else (chosen, known)


def shelves(wish: Wish) -> tuple[str, ...]:
    """The shelves of the index a wish may look at."""
    owners = places.owners(wish.scope)
    memory = owners if any(kind not in ASSETS for kind in wish.types) else ()
    assets = tuple(owner + store.ASSET_SHELF for owner in owners) if any(k in ASSETS for k in wish.types) else ()
    return (*memory, *assets)


def expression(wish: Wish, terms: Sequence[str], *, named: bool = False) -> str:
    """The FTS5 expression of a wish: the words (``named``: words of names only), without what is not wanted."""
    phrases = [match for phrase in wish.query.phrases if (match := query.match_phrase(phrase))]
    wanted = [f"({phrase})" for phrase in phrases]
    if named:
        wanted.append(query.match_name(terms))
    elif terms:
        wanted.append(query.match_any(terms))
    unwanted = [store.type_word(kind) for kind in EVERY if kind not in wish.types and kind not in ASSETS]
    if len(unwanted) > _MOST_TYPES or not wanted:  # a few types are wanted: naming them is shorter
        wanted.append(f"({' OR '.join(store.type_word(kind) for kind in wish.types)})")
        unwanted = []
    elif any(kind in ASSETS for kind in wish.types):
        unwanted += [store.type_word(kind) for kind in ASSETS if kind not in wish.types]
    if wish.without_session is not None:
        unwanted.append(wish.without_session)
    if not wish.deprecated:
        unwanted.append(content.DEPRECATED)
    whole = " AND ".join(wanted)
    return f"({whole}) NOT ({' OR '.join(unwanted)})" if unwanted else whole


def order(wish: Wish, rows: Sequence[store.Row], counts: Mapping[str, int], size: int) -> list[Found]:
    """The best piece of each file (or each piece), best first; too old, too weak or without a phrase is left out."""
    kept = [row for row in rows if _is_recent(row, wish.since) and rank.holds(row.candidate, wish.query.phrases)]
    length = sum(row.candidate.length for row in kept) / len(kept) if kept else 0.0
    corpus = rank.Corpus(size, counts, length)
    best: dict[tuple[str, str], Found] = {}
    for row in kept:
        score, terms = rank.score(wish.query, row.candidate, corpus)
        key = (row.path, row.candidate.text if wish.by_piece else "")
        if score > 0 and score >= wish.min_score and (key not in best or best[key].score < score):
            best[key] = Found(row, score, terms)
    return sorted(best.values(), key=lambda found: (-found.score, found.row.path))


def _is_recent(row: store.Row, since: datetime | None) -> bool:
    if since is None:
        return True
    said = parse_iso(row.ts) if row.ts else None
    return (said or datetime.fromtimestamp(row.mtime / 1e9, UTC)) >= since


def as_hit(found: Found, wish: Wish) -> SearchHit:
    """A memory hit."""
    return SearchHit(*_shown(found, wish))


def as_any(found: Found, wish: Wish) -> SearchAllHit:
    """A hit of any source."""
    kind = found.row.type
    source: hits.Source = "asset" if kind in ASSETS else "archive" if kind == "archive" else "memory"
    return SearchAllHit(source, *_shown(found, wish))


def _shown(found: Found, wish: Wish) -> tuple[str, str | None, str, float, str, list[str]]:
    row = found.row
    snippet = rank.snippet(row.candidate.text, (*(p.lower() for p in wish.query.phrases), *found.terms))
    path = PurePosixPath(row.path)
    uri = uris.from_path(path.parent if row.type in ASSETS else path)
    return row.path, uri, row.type, round(found.score, 4), snippet, [*found.terms, *wish.query.phrases]
