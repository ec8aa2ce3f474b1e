"""What may be stored as a fact, and how a short id is read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from amrita_plugin_memory.kernel.errors import Ambiguous, InvalidInput, NotFound
from amrita_plugin_memory.kernel.text import clean, is_blank, one_line

from .fact import IMPORTANCES, Importance

MAX_CONTENT: Final = 2_000
MAX_TAGS: Final = 200
SHORTEST_ID: Final = 4  # what a person may type
SHOWN_ID: Final = 8  # what is shown: long enough that the short id of a fact does not change as others come
MAX_TOP_K: Final = 50
_TAG_MARKS: Final = str.maketrans("，、；;|\n", ",,,,,,")


def checked_content(content: str) -> str:
    """The text as it will be stored.

    Raises:
        InvalidInput: blank, or longer than 2,000 characters.

    """
    if is_blank(content):
        raise InvalidInput("记忆内容为空，请写明要记住什么")
    text = clean(content).strip()
    if len(text) > MAX_CONTENT:
        raise InvalidInput(f"记忆内容有 {len(text)} 字，超过单条上限 {MAX_CONTENT} 字，请拆成几条")
    return text


def checked_question(question: str) -> str:
    """What is looked for, as it will be embedded; what is too long is cut.

    Raises:
        InvalidInput: nothing readable in it.

    """
    if is_blank(question):
        raise InvalidInput("没有写要找什么，请写一句话或几个词")
    return clean(question).strip()[:MAX_CONTENT]


def checked_tags(tags: str | Iterable[str]) -> str:
    """Tags as one comma-separated string without repetitions.

    Raises:
        InvalidInput: longer than 200 characters in all.

    """
    joined = tags if isinstance(tags, str) else ",".join(tags)
    parts = (one_line(part) for part in clean(joined).translate(_TAG_MARKS).split(","))
    text = ",".join(dict.fromkeys(part.lstrip("#") for part in parts if part.lstrip("#")))
    if len(text) > MAX_TAGS:
        raise InvalidInput(f"标签共 {len(text)} 字，超过上限 {MAX_TAGS} 字，请减少标签")
    return text


def checked_importance(importance: str) -> Importance:
    """One of low, medium, high.

    Raises:
        InvalidInput: anything else.

    """
    for known in IMPORTANCES:
        if known == importance:
            return known
    raise InvalidInput(f"importance 只能是 low、medium 或 high，收到的是 {str(importance)[:20]!r}")


def checked_top_k(top_k: int) -> int:
    """A number of results from 1 to 50.

    Raises:
        InvalidInput: less than 1; more than 50 is taken as 50.

    """
    if top_k < 1:
        raise InvalidInput(f"top_k 必须是 1 到 {MAX_TOP_K} 之间的整数，收到的是 {top_k}")
    return min(top_k, MAX_TOP_K)


def same_text(content: str) -> str:
    """What two contents have in common when they are exact duplicates: letters, not blanks or case."""
    return one_line(clean(content)).casefold()


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """The shortest prefix of each id, at least eight characters, that no other of ``ids`` shares."""
    shorts = {one: one[:SHOWN_ID] for one in ids}
    if len(set(shorts.values())) == len(shorts):  # as good as always: a read must not pay for comparing ids
        return shorts
    ordered = sorted(shorts)
    shared = [0, *(_shared(one, other) for one, other in pairwise(ordered)), 0]
    return {one: one[: 1 + max(SHOWN_ID - 1, shared[i], shared[i + 1])] for i, one in enumerate(ordered)}


def _shared(one: str, other: str) -> int:
    """How many leading characters two different ids have in common."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def resolve(given: str, ids: Sequence[str]) -> str:
    """The one id that ``given`` names: whole, or an unambiguous prefix of at least four characters.

    Raises:
        NotFound: none of ``ids``; also for anything shorter than four characters.
        Ambiguous: several.

    """
    wanted = given.strip().lstrip("#")
    if wanted in ids:
        return wanted
    found = [one for one in ids if len(wanted) >= SHORTEST_ID and one.lower().startswith(wanted.lower())]
    if not found:
        raise NotFound(f"没有编号为 {one_line(given)[:40]} 的记忆，请用列表中的编号")
    if len(found) > 1:
        raise Ambiguous(f"编号 {one_line(given)[:40]} 对应 {len(found)} 条记忆，请多写几位")
    return found[0]
