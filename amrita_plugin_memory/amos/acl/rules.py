"""Who may do what to which resource. Pure: values in, values out; deny is the answer to everything not granted.

A resource is a path of components. ``users/{a}/…`` belongs to the user a; ``shared/…`` to the system; anything else is
relative to the space of the one who asks. Patterns are compared component by component: ``*`` is exactly one component
(``assets/tools/*`` meets ``assets/tools/x``, neither ``assets/tools_evil/x`` nor ``assets/tools/x/y``), ``**`` is any
number of components, ``*`` inside a component is any run of characters there. An entry may name a resource relative to
its owner (``assets/tools/x``) or in full (``users/{a}/assets/tools/x``).

In lists of actors, ``owner`` is the owner of the list, ``system`` the author of the root's manifest and ``*`` anybody.
These three are words, not names: a user who is called "owner" is not thereby the owner, and one who is called "system"
is the system only when the manifest says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, get_args

from amrita_plugin_memory.kernel.errors import InvalidInput, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Action: TypeAlias = Literal["read", "write", "execute"]

ACTIONS: Final = get_args(Action)
WORDS: Final = frozenset(("owner", "system", "*"))


@dataclass(frozen=True, slots=True)
class AclEntry:
    """A grant: these actors may do these actions to resources of this pattern."""

    resource: str
    allow: tuple[str, ...]
    actors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AclFile:
    """An access list as ``acl.json`` holds it; ``default`` says who may do what no entry speaks of."""

    owner: str
    entries: tuple[AclEntry, ...] = ()
    default: Mapping[str, tuple[str, ...]] | None = None

    def defaults(self, action: Action) -> tuple[str, ...]:
        """Actors the list's ``default`` grants an action to."""
        return () if self.default is None else self.default.get(action, ())


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists that speak about one resource: None is "there is none", "broken" is "there is one, unreadable"."""

    user: AclFile | Literal["broken"] | None
    everyone: AclFile | Literal["broken"] | None


def read(data: object) -> AclFile:
    """An access list from parsed JSON.

    Raises:
        InvalidInput: not of the protocol's form; a doubtful list is never half believed.

    """
    fields = cast("dict[str, object]", data) if isinstance(data, dict) else {}
    owner, entries, default = fields.get("owner"), fields.get("entries", []), fields.get("default", {})
    if not isinstance(owner, str):
        raise InvalidInput("权限文件缺少 owner，请修正 acl.json")
    if not isinstance(entries, list) or not isinstance(default, dict):
        raise InvalidInput("权限文件的 entries 或 default 格式不对，请修正 acl.json")
    return AclFile(
        owner=owner,
        entries=tuple(_entry(entry) for entry in cast("list[object]", entries)),
        default={action: _strings(actors) for action, actors in cast("dict[str, object]", default).items()},
    )


def write(acl: AclFile) -> dict[str, object]:
    """The JSON form, with exactly the keys the reference implementation accepts."""
    return {
        "owner": acl.owner,
        "entries": [{"resource": e.resource, "allow": [*e.allow], "actors": [*e.actors]} for e in acl.entries],
        "default": {action: [*acl.defaults(action)] for action in ACTIONS},
    }


def check_action(action: str) -> None:
    """Raise InvalidInput for an action the protocol does not know."""
    if action not in ACTIONS:
        raise InvalidInput(f"权限动作 {shorten(action)} 不存在，可用：{' '.join(ACTIONS)}")


def owner_of(resource: str, actor: str) -> str | None:
    """The user whose list decides about a resource; None for the system's own (``shared/…``, ``acl/…``)."""
    parts = _parts(resource)
    if parts[0] == "users" and len(parts) > 1:
        return parts[1]
    return None if parts[0] in ("shared", "acl", "events", "logs", "tasks") else actor


def allows(resource: str, action: Action, actor: str, *, lists: Lists, author: str) -> bool:
    """The decision.

    A user's own list, when there is one, decides alone about what is theirs. Without one, the global list may grant,
    and the owner may read and write (never execute) what is their own. ``shared`` may be read by everybody. A list
    that cannot be read leaves its owner reading and denies the rest.
    """
    check_action(action)
    owner = owner_of(resource, actor)
    parts = _parts(resource)
    if owner is not None and lists.user is not None:
        if lists.user == "broken":
            return action == "read" and actor == owner
        return _grants(lists.user, _spellings(parts, owner), action, actor=actor, author=author)
    if lists.everyone == "broken":
        return action == "read" and actor == owner
    if (owner == actor and action != "execute") or (parts[0] == "shared" and action == "read"):
        return True
    everyone = lists.everyone or AclFile(owner=author, default=dict.fromkeys(ACTIONS, ("system",)))
    return _grants(everyone, _spellings(parts, owner), action, actor=actor, author=author)


def matches(pattern: str, resource: str) -> bool:
    """True when a pattern meets a resource, component by component."""
    return _meets(pattern.strip("/").split("/"), _parts(resource))


def _grants(acl: AclFile, spellings: Sequence[list[str]], action: Action, *, actor: str, author: str) -> bool:
    for entry in acl.entries:
        pattern = entry.resource.strip("/").split("/")
        met = action in entry.allow and any(_meets(pattern, spelling) for spelling in spellings)
        if met and _names(entry.actors, actor, acl.owner, author):
            return True
    return _names(acl.defaults(action), actor, acl.owner, author)


def _names(actors: Sequence[str], actor: str, owner: str, author: str) -> bool:
    if actor in actors and actor not in WORDS:
        return True
    if "*" in actors:
        return True
    return ("owner" in actors and actor == owner) or ("system" in actors and actor == author)


def _spellings(parts: list[str], owner: str | None) -> list[list[str]]:
    if parts[0] == "users":
        return [parts, parts[2:]] if len(parts) > 2 else [parts]
    if parts[0] == "shared":
        return [parts, parts[1:]] if len(parts) > 1 else [parts]
    return [parts] if owner is None else [parts, ["users", owner, *parts]]


def _meets(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return _meets(pattern[1:], parts) or (bool(parts) and _meets(pattern, parts[1:]))
    return bool(parts) and _meets_one(pattern[0], parts[0]) and _meets(pattern[1:], parts[1:])


def _meets_one(pattern: str, part: str) -> bool:
    if "*" not in pattern:
        return pattern == part
    return re.fullmatch(".*".join(map(re.escape, re.split(r"\*+", pattern))), part, re.DOTALL) is not None


def _parts(resource: str) -> list[str]:
    parts = resource.strip("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise InvalidInput(f"资源路径 {shorten(resource)} 不可用")
    return parts


def _entry(entry: object) -> AclEntry:
    fields = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    if set(fields) != {"resource", "allow", "actors"}:
        raise InvalidInput("权限条目只能有 resource、allow、actors 三项，请修正 acl.json")
    resource = fields["resource"]
    if not isinstance(resource, str):
        raise InvalidInput("权限条目的 resource 必须是文字，请修正 acl.json")
    return AclEntry(resource, _strings(fields["allow"]), _strings(fields["actors"]))


def _strings(value: object) -> tuple[str, ...]:
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    strings = tuple(item for item in items if isinstance(item, str))
    if len(strings) != len(items):
        raise InvalidInput("权限文件里的名单必须是文字列表，请修正 acl.json")
    return strings
