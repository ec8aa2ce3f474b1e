"""Opening Chroma: the local directory or a server. Blocking; the only file that imports chromadb, and not at import."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.settings import EnvSettings

from .directory import ChangeStamp

if TYPE_CHECKING:
    from chromadb.api import ServerAPI
    from chromadb.api.models.Collection import Collection as ChromaHandle
    from chromadb.config import System

Connect: TypeAlias = "Callable[[], Connection]"

BATCH = 500  # rows a write: far below Chroma's 5461, so that one write ends within its time limit on a slow disk
_TENANT, _DATABASE = "default_tenant", "default_database"


@dataclass(slots=True)
class Connection:
    """One open store.

    ``users`` counts calls under way, so that it is closed after the last of them; ``commits`` counts what SQLite was
    made to commit, so that commits of other processes stand out.

    Chroma's ``Client`` is passed by: its constructor talks to the server before a timeout can be set, and shares state
    between all clients of a process. The same server object below it is used directly.
    """

    system: System
    server: ServerAPI
    tenant: str = _TENANT
    database: str = _DATABASE
    stamp: ChangeStamp | None = None
    users: int = 0
    commits: int = 0
    handles: dict[str, ChromaHandle] = field(default_factory=dict[str, "ChromaHandle"])

    def collection(self, name: str) -> ChromaHandle:
        """The collection that bears this name; never with an embedding function, which would download a model."""
        handle = self.handles.get(name)
        if handle is None:
            model = self.server.get_collection(name, tenant=self.tenant, database=self.database)
            handle = self.handles[name] = _handle(self.server, model)
        return handle

    def fresh(self, name: str) -> ChromaHandle:
        """The same, asked of the store again."""
        self.handles.pop(name, None)
        return self.collection(name)

    def find(self, name: str) -> ChromaHandle | None:
        """The collection, or None when there is none."""
        from chromadb.errors import NotFoundError

        try:
            return self.fresh(name)
        except NotFoundError:
            return None

    def create(self, name: str) -> ChromaHandle:
        """Make the collection unless it is there, as the published plugin does: squared L2, no metadata."""
        found = self.find(name)
        if found is not None:
            return found
        self.commits += 1
        self.server.get_or_create_collection(name, tenant=self.tenant, database=self.database)
        return self.fresh(name)

    def drop(self, name: str) -> None:
        """Remove the collection; no error when there is none."""
        if self.find(name) is not None:
            self.commits += 1
            self.server.delete_collection(name, tenant=self.tenant, database=self.database)
            self.handles.clear()

    def modify(self, name: str, *, new_name: str | None = None, metadata: dict[str, Any] | None = None) -> None:
        """Rename the collection or replace its metadata."""
        handle = self.fresh(name)
        self.commits += 1
        handle.modify(name=new_name, metadata=metadata)
        self.handles.clear()

    def dimension(self, name: str) -> int:
        """Components of the collection's vectors; 0 before the first."""
        return self.server.get_collection(name, tenant=self.tenant, database=self.database).dimension or 0

    def batch(self) -> int:
        """How many rows one write may carry."""
        return min(BATCH, self.server.get_max_batch_size())

    def names(self) -> list[str]:
        """Names of all collections, asked page by page."""
        found: list[str] = []
        while True:
            page = self.server.list_collections(500, len(found), tenant=self.tenant, database=self.database)
            found.extend(model.name for model in page)
            if len(page) < 500:
                return sorted(found)

    def close(self) -> None:
        """Close what is open; the stamp last, see ChangeStamp."""
        self.handles.clear()
        self.system.stop()
        session: Any = vars(self.server).get("_session")
        if session is not None:
            session.close()
        if self.stamp is not None:
            self.stamp.close()


def load() -> None:
    """Import chromadb: seconds of work, hence apart from connecting, which has a short time limit."""
    for module in ("chromadb.api.fastapi", "chromadb.api.rust", "chromadb.api.models.Collection"):
        import_module(module)


def local(directory: Path) -> Connection:
    """Open the directory in this process. The published plugin used the default tenant and database there."""
    system, server = _start(is_persistent=True, persist_directory=str(directory))
    return Connection(system, server, stamp=ChangeStamp(directory))


def remote(settings: EnvSettings) -> Connection:
    """Open a server; every request of it is bounded by ``vector_db_timeout`` seconds.

    Raises:
        StoreUnavailable: the tenant or database is not there, also not under the stock names.

    """
    headers = {name: value.get_secret_value() for name, value in settings.vector_db_remote_headers.items()}
    system, server = _start(
        chroma_api_impl="chromadb.api.fastapi.FastAPI",
        chroma_server_host=settings.vector_db_server,
        chroma_server_http_port=settings.vector_db_port,
        chroma_server_ssl_enabled=settings.vector_db_server_ssl,
        chroma_server_headers=headers,
    )
    connection = Connection(system, server)
    try:
        _bound(server, settings)
        connection.tenant, connection.database = _tenancy(server, settings)
    except BaseException:
        connection.close()
        raise
    return connection


def _start(**values: Any) -> tuple[System, ServerAPI]:
    from chromadb.api import ServerAPI
    from chromadb.config import Settings, System

    system = System(Settings(anonymized_telemetry=False, allow_reset=False, **values))
    server: ServerAPI = system.instance(ServerAPI)  # pyright: ignore[reportAbstractUsage]
    system.start()
    return system, server


def _handle(server: ServerAPI, model: Any) -> ChromaHandle:
    from chromadb.api.models.Collection import Collection

    return Collection(client=server, model=model, embedding_function=None)


def _bound(server: ServerAPI, settings: EnvSettings) -> None:
    # Chroma builds its HTTP session without any timeout, and lets a proxy of the environment stand before loopback.
    old: Any = vars(server)["_session"]
    session = type(old)(
        timeout=0.9 * settings.vector_db_timeout,
        headers=old.headers,
        trust_env=not _is_loopback(settings.vector_db_server),
    )
    old.close()
    vars(server)["_session"] = session


def _is_loopback(server: str) -> bool:
    host = urlsplit(server if "//" in server else f"//{server}").hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _tenancy(server: ServerAPI, settings: EnvSettings) -> tuple[str, str]:
    tenant = _first(
        [settings.vector_db_tenant, _TENANT],
        server.get_tenant,
        what="租户",
        setting="VECTOR_DB_TENANT",
    )
    database = _first(
        [settings.vector_db_database, _DATABASE],
        lambda name: server.get_database(name, tenant=tenant),
        what="数据库",
        setting="VECTOR_DB_DATABASE",
    )
    return tenant, database


def _first(names: list[str], look: Callable[[str], object], *, what: str, setting: str) -> str:
    from chromadb.errors import NotFoundError

    # Only the word "default", which no stock server knows, stands for the stock name: any other is meant as it is.
    for name in names if names[0] == "default" else names[:1]:
        try:
            look(name)
        except NotFoundError:
            continue
        return name
    raise StoreUnavailable(f"Chroma 服务上没有{what} {names[0]}，请检查 {setting}")
