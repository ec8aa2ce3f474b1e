"""Where everything stands in an AMOS root. Pure: every function gives a `PurePosixPath` relative to the root.

Names pass through `names.component`, so that a path made here cannot leave the root.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from amrita_plugin_memory.kernel.errors import InvalidInput
from amrita_plugin_memory.kernel.scope import Scope

from .names import component

VERSION: Final = PurePosixPath("version.txt")
MANIFEST: Final = PurePosixPath("manifest.json")
CACHE_VERSION: Final = PurePosixPath("cache_version.txt")
INDEX: Final = PurePosixPath("index.json")
INDEX_JOURNAL: Final = PurePosixPath("index.journal")
SHARED: Final = PurePosixPath("shared")
USERS: Final = PurePosixPath("users")
TASKS: Final = PurePosixPath("tasks")
EVENT_LOG: Final = PurePosixPath("events/event_log.jsonl")
GLOBAL_ACL: Final = PurePosixPath("acl/global.acl.json")
LOGS: Final = PurePosixPath("logs")
SYSTEM_LOG: Final = LOGS / "system.log"
ERROR_LOG: Final = LOGS / "error.log"
PRIVATE: Final = PurePosixPath(".amos")  # what only this implementation keeps, such as the search index; safe to delete

TASK_STATES: Final = ("pending", "running", "completed", "failed")
ASSET_DIRS: Final = {"tool": "tools", "page": "pages", "app": "APPs"}
FOLDERS: Final = (
    SHARED / "workflows",
    SHARED / "knowledge",
    SHARED / "assets",
    USERS,
    *(TASKS / state for state in TASK_STATES),
    EVENT_LOG.parent,
    GLOBAL_ACL.parent,
    LOGS,
)
_TASK_ID: Final = re.compile(r"[0-9a-zA-Z_-]{1,64}")
_DAY: Final = re.compile(r"[0-9]{8}")


def make_scope(actor: object, agent: object = None, session: object = "default") -> Scope:
    """A scope whose parts are safe path components.

    Raises:
        InvalidName: one of the parts cannot be a path component.

    """
    return Scope(
        actor=component(actor, what="用户"),
        agent=None if agent is None else component(agent, what="Agent"),
        session=component(session, what="会话"),
    )


def user_dir(actor: str) -> PurePosixPath:
    """``users/{actor}``."""
    return USERS / component(actor, what="用户")


def agent_dir(actor: str, agent: str) -> PurePosixPath:
    """``users/{actor}/agents/{agent}``."""
    return user_dir(actor) / "agents" / component(agent, what="Agent")


def home_dir(scope: Scope) -> PurePosixPath:
    """Where the sessions of a scope stand: the agent's folder when it has an agent, else the user's."""
    return user_dir(scope.actor) if scope.agent is None else agent_dir(scope.actor, scope.agent)


def soul(owner: PurePosixPath) -> PurePosixPath:
    """The persona of ``SHARED``, a user folder or an agent folder."""
    return owner / "soul.md"


def soul_chain(scope: Scope) -> tuple[PurePosixPath, ...]:
    """Soul files from the strongest to the weakest: agent, user, shared."""
    owners = (user_dir(scope.actor), SHARED)
    return tuple(soul(owner) for owner in (owners if scope.agent is None else (home_dir(scope), *owners)))


def profile(actor: str) -> PurePosixPath:
    """The portrait of a user."""
    return user_dir(actor) / "profile.md"


def user_acl(actor: str) -> PurePosixPath:
    """The access list a user keeps."""
    return user_dir(actor) / "acl.json"


def agent_manifest(actor: str, agent: str) -> PurePosixPath:
    """The manifest of one agent."""
    return agent_dir(actor, agent) / "manifest.json"


def session_dir(scope: Scope) -> PurePosixPath:
    """Folder of the session that the scope names."""
    return home_dir(scope) / "sessions" / component(scope.session, what="会话")


def messages(scope: Scope) -> PurePosixPath:
    """The uncompressed turns of a session."""
    return session_dir(scope) / "messages.jsonl"


def summary(scope: Scope) -> PurePosixPath:
    """The summary of a session."""
    return session_dir(scope) / "summary.md"


def archive_dir(scope: Scope) -> PurePosixPath:
    """Folder of a session's compressed turns."""
    return session_dir(scope) / "archive"


def archive(scope: Scope, day: str) -> PurePosixPath:
    """Compressed turns of one day, ``day`` as YYYYMMDD."""
    if not _DAY.fullmatch(day):
        raise InvalidInput(f"归档日期应是八位数字，收到的是 {day[:20]!r}")
    return archive_dir(scope) / f"messages_{day}.jsonl"


def owners(scope: Scope) -> tuple[PurePosixPath, PurePosixPath]:
    """Folders whose lists are merged for a scope, the stronger first: the user's, then ``shared``."""
    return user_dir(scope.actor), SHARED


def workflow(owner: PurePosixPath, name: object) -> PurePosixPath:
    """One workflow of an owner folder (a user folder or ``SHARED``)."""
    return owner / "workflows" / f"{component(name, what='工作流', suffix='.md')}.md"


def knowledge(owner: PurePosixPath, domain: object, entity: object) -> PurePosixPath:
    """One knowledge entry of an owner folder (a user folder or ``SHARED``)."""
    folder = owner / "knowledge" / component(domain, what="知识领域")
    return folder / f"{component(entity, what='知识条目', suffix='.md')}.md"


def asset_dir(owner: PurePosixPath, asset_type: str, name: object) -> PurePosixPath:
    """Folder of one asset; ``asset_type`` is tool, page or app."""
    if asset_type not in ASSET_DIRS:
        raise InvalidInput(f"资产类型只能是 tool、page 或 app，收到的是 {asset_type[:20]!r}")
    return owner / "assets" / ASSET_DIRS[asset_type] / component(name, what="资产")


def task(state: str, task_id: str) -> PurePosixPath:
    """File of one task; ``state`` is one of `TASK_STATES`."""
    if state not in TASK_STATES or not _TASK_ID.fullmatch(task_id):
        raise InvalidInput("任务状态或编号不对，状态只能是 pending、running、completed、failed")
    return TASKS / state / f"task_{task_id}.json"


def is_within(path: PurePosixPath, folder: PurePosixPath) -> bool:
    """True when ``path`` is ``folder`` or under it, by whole components: users/1234 is not in users/123."""
    return ".." not in path.parts and path.parts[: len(folder.parts)] == folder.parts


def is_visible(path: PurePosixPath, actor: str) -> bool:
    """True when a path belongs to ``shared`` or to this actor."""
    return is_within(path, SHARED) or is_within(path, user_dir(actor))


def relative(text: str | PurePosixPath) -> PurePosixPath:
    """A relative path from outside, checked: no absolute path, drive, backslash, control character or ``..``.

    Raises:
        InvalidInput: the path could leave the root.

    """
    raw = str(text)
    parts = raw.split("/")
    if not raw or raw.startswith("/") or "\\" in raw or ":" in parts[0] or any(ord(sign) < 32 for sign in raw):
        raise InvalidInput(f"路径 {raw[:40]!r} 不可用，请给出根目录内的相对路径")
    if any(part in ("", ".", "..") for part in parts):
        raise InvalidInput(f"路径 {raw[:40]!r} 不可用，请给出根目录内的相对路径")
    return PurePosixPath(raw)
