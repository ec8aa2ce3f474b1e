"""Which files travel in a package, and what is done with each that arrives. Pure: values in, values out."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from amrita_plugin_memory.amos.errors import BundleError
from amrita_plugin_memory.amos.ground import names
from amrita_plugin_memory.kernel.errors import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .limits import Limits

CHECKSUMS: Final = "checksums.json"
ROOT_FILES: Final = frozenset(("version.txt", "manifest.json", "cache_version.txt", "index.json", CHECKSUMS))
HIDDEN_KEPT: Final = frozenset((".analysis_state.json",))
ASSET_KINDS: Final = frozenset(("tools", "pages", "APPs"))
CODE_KINDS: Final = frozenset(("tools", "APPs"))
_LEFTOVER: Final = re.compile(r".*\.(tmp|lock)")
_OUR_LEFTOVER: Final = re.compile(r".+\.[0-9a-f]{8,16}\.tmp|.+\.(json|jsonl|md|py)\.lock")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,60}\.(?:md|jsonl|json|txt)")
_FORBIDDEN: Final = re.compile(r'[\x00-\x1f\x7f\\:<>"|?*]|[. ](?:/|$)')
_DEVICES: Final = frozenset(("con", "prn", "aux", "nul", *(f"{p}{n}" for p in ("com", "lpt") for n in range(10))))
_SCOPED: Final = frozenset(("workflows", "knowledge", "assets", "soul.md", "profile.md", "acl.json"))


@dataclass(frozen=True, slots=True)
class Selection:
    """What is exported: everything, one user, or one agent of a user with what that agent reads."""

    actor: str | None = None
    agent: str | None = None

    def takes(self, path: str, is_folder: bool) -> bool:
        """True for what belongs into the package; temp files, locks, logs and private files never do."""
        parts = path.split("/")
        if parts[-1].startswith(".") if is_folder else is_leftover(path):
            return False
        top = parts[0]
        if self.actor is None:
            return top in ("shared", "users", "tasks", "acl", "events") or (not is_folder and path in ROOT_FILES)
        if top == "shared":
            return True
        if top != "users" or (len(parts) > 1 and parts[1] != self.actor):
            return False
        return self.agent is None or len(parts) < 3 or self._of_agent(parts[2:])

    def _of_agent(self, rest: list[str]) -> bool:
        if rest[0] == "agents":
            return len(rest) < 2 or rest[1] == self.agent
        return rest[0] in _SCOPED

    def covers_version(self, key: str) -> bool:
        """True when a key of ``cache_version.txt`` (``actor`` or ``actor/agent``) may be told."""
        if self.actor is None:
            return True
        actor, _, agent = key.partition("/")
        return actor == self.actor and (self.agent is None or agent in ("", self.agent))


def is_leftover(path: str) -> bool:
    """True for temp files, locks and hidden files that are nobody's memory (an app may well hold a ``uv.lock``)."""
    name = path.rpartition("/")[2]
    if name.startswith("."):
        return name not in HIDDEN_KEPT
    return bool((_OUR_LEFTOVER if "/assets/" in path else _LEFTOVER).fullmatch(name))


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where a member called ``name`` goes (``path`` None: it is left out, for the reason ``why``)."""

    name: str
    path: str | None
    why: str = ""


@dataclass(slots=True)
class Gate:
    """Judges the names of one package; remembers what came, so that no two names fall together on any disk."""

    limits: Limits
    mapping: Mapping[str, str]
    trust_acl: bool
    _seen: set[str] = field(default_factory=set[str])
    _known: dict[str, bool] = field(default_factory=dict[str, bool])
    _folders: dict[str, Arrival] = field(default_factory=dict[str, Arrival])

    def judge(self, name: str) -> Arrival:
        """Where a file member goes.

        Raises:
            BundleError: a name that tries to leave its place, or comes twice. Such a package is refused whole.

        """
        folder, _, last = name.rpartition("/")
        found = self._plain(folder, last) if folder.strip("./") and _is_plain(last) else self._judge(name)
        folded = found.name.lower() if found.name.isascii() else names.fold(found.name)
        if folded in self._seen:
            raise BundleError(f"数据包里 {shorten(found.name)} 出现了两次，已拒绝")
        self._seen.add(folded)
        return found

    def _plain(self, folder: str, last: str) -> Arrival:
        """The same for a name like most, of which only the folder has to be judged, once."""
        known = self._folders.get(folder)
        if known is None:
            known = self._folders[folder] = self._judge(f"{folder}/x.md")
        path = known.path and known.path[:-4] + last
        return Arrival(known.name[:-4] + last, path, known.why)

    def _judge(self, name: str) -> Arrival:
        parts = safe_parts(name, self.limits)
        path = "/".join(parts)
        why = self._objection(parts)
        if why:
            return Arrival(path, None, why)
        if parts[0] != "users" or parts[1] not in self.mapping:
            return Arrival(path, path)
        return Arrival(path, "/".join(("users", self.mapping[parts[1]], *parts[2:])))

    def _objection(self, parts: list[str]) -> str:
        if is_leftover("/".join(parts)) or any(part.startswith(".") for part in parts[:-1]):
            return "临时或隐藏文件"
        top = parts[0]
        if len(parts) == 1:
            return "" if top in ROOT_FILES else "不属于协议"
        if parts[-1] == "acl.json" or top == "acl":
            return "" if self.trust_acl else "权限文件不随包导入"
        if top == "tasks":
            return "" if len(parts) == 3 and parts[1] in ("pending", "running", "completed", "failed") else "不属于协议"
        if top not in ("shared", "users"):
            return "日志不随包导入" if top in ("events", "logs") else "不属于协议"
        return "" if self._are_names(parts) else "名称不可用"

    def _are_names(self, parts: list[str]) -> bool:
        strict, loose = _named(parts)
        return all(map(self._is_name, strict)) and not any(map(_is_device, loose))

    def _is_name(self, part: str) -> bool:
        known = self._known.get(part)
        if known is None:
            known = self._known[part] = names.is_component(part)
        return known


def _is_plain(last: str) -> bool:
    return bool(_PLAIN.fullmatch(last)) and last != "acl.json" and not _is_device(last)


def safe_parts(name: str, limits: Limits) -> list[str]:
    """The components of a member's name, in NFC, without a leading ``./``.

    Raises:
        BundleError: absolute, ``..``, a drive, a backslash, a control sign, too deep or too long.

    """
    whole = name if name.isascii() else unicodedata.normalize("NFC", name)
    parts = [part for part in whole.rstrip("/").split("/") if part != "."]
    bad = (
        name.startswith("/")
        or not 0 < len(parts) <= limits.depth
        or "" in parts
        or _FORBIDDEN.search("/".join(parts))
        or (len(name) * 4 > limits.name and any(len(part.encode()) > limits.name for part in parts))
    )
    if bad:
        raise BundleError(f"数据包里有不安全的文件名 {shorten(name)}，已拒绝整个数据包")
    return parts


def _named(parts: list[str]) -> tuple[list[str], list[str]]:
    """The components that callers name, which must be usable, and those below, which must only be harmless."""
    rest = parts[1:] if parts[0] == "shared" else parts[2:]
    owners = parts[1:2] if parts[0] == "users" else []
    if rest[:1] == ["agents"]:
        owners, rest = [*owners, *rest[1:2]], rest[2:]
    if not rest:
        return ["."], []
    at = {"sessions": (1, 2), "assets": (2, 3)}.get(rest[0], (1, len(rest)))
    return [*owners, *rest[at[0] : at[1]]], rest[at[1] :]


def _is_device(part: str) -> bool:
    return part.partition(".")[0].rstrip().casefold() in _DEVICES


def unit(path: str) -> str | None:
    """The folder that stays or goes as one: a session or an asset; None for a file that stands alone."""
    if "/sessions/" not in path and "/assets/" not in path:
        return None
    parts = path.split("/")
    at = 1 if parts[0] == "shared" else 2
    if parts[at : at + 1] == ["agents"]:
        at += 2
    if parts[at : at + 1] == ["sessions"] and len(parts) > at + 2:
        return "/".join(parts[: at + 2])
    if parts[at : at + 1] == ["assets"] and len(parts) > at + 3 and parts[at + 1] in ASSET_KINDS:
        return "/".join(parts[: at + 3])
    return None


def is_code(folder: str) -> bool:
    """True when a unit is a tool or an app."""
    parts = folder.split("/")
    return "assets" in parts and parts[parts.index("assets") + 1] in CODE_KINDS


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Raise InvalidName or BundleError when an actor mapping cannot be used."""
    for source, target in mapping.items():
        names.component(target, what="映射后的用户")
        if not source:
            raise BundleError("用户映射的原用户不能为空")
    if len({names.fold(target) for target in mapping.values()}) != len(mapping):
        raise BundleError("用户映射把两个用户指到了同一个目标，请改正")
