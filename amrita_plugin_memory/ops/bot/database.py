"""The memo rows in the bot's own database, without the bot: plain SQL over a plain driver. Blocking.

Table and columns are the plugin's migration's; the host's parent table is only written to where a foreign key asks.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from amrita_plugin_memory.kernel.errors import StoreUnavailable

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

TABLE: Final = "amrita_plugin_memory_user_memo"
PARENT: Final = "amrita_user_metadata"
_PAGE: Final = 500
_ASYNC_DRIVERS: Final = {
    "sqlite+aiosqlite": ("sqlite",),
    "postgresql+asyncpg": ("postgresql+psycopg", "postgresql+psycopg2"),
    "postgresql+psycopg": ("postgresql+psycopg",),
    "mysql+aiomysql": ("mysql+pymysql", "mysql+mysqldb"),
    "mysql+asyncmy": ("mysql+pymysql", "mysql+mysqldb"),
}
_SENTENCE: Final = "打不开机器人的数据库，请检查 SQLALCHEMY_DATABASE_URL，并先运行 ambot orm upgrade"


@dataclass(frozen=True, slots=True)
class MemoRecord:
    """One memo row as it stands."""

    key: str
    content: str
    version: int
    updated_at: datetime


class MemoTable:
    """The table at ``url``, an address as NoneBot has it. Opens nothing before the first call."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._engine: Engine | None = None
        self._tables: dict[str, Table] = {}

    @contextmanager
    def begin(self) -> Generator[Memos | None]:
        """One transaction; None when the table is not there (never migrated, or no L1 yet).

        Raises:
            StoreUnavailable: the database cannot be reached; nothing was changed.

        """
        from sqlalchemy.exc import SQLAlchemyError

        try:
            engine = self._open()
            with engine.begin() as connection:
                yield self._memos(connection)
        except (SQLAlchemyError, ImportError, OSError) as e:
            raise StoreUnavailable(_SENTENCE) from e

    def rows(self) -> Iterator[MemoRecord]:
        """All rows by key, page by page, each page in a transaction of its own.

        Raises:
            StoreUnavailable: the database cannot be reached.

        """
        last = ""
        while True:
            with self.begin() as memos:
                page = memos.page(after=last) if memos else []
            yield from page
            if len(page) < _PAGE:
                return
            last = page[-1].key

    def close(self) -> None:
        """Give the connections back."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def _open(self) -> Engine:
        if self._engine is None:
            self._engine = _engine(self._url)
        return self._engine

    def _memos(self, connection: Connection) -> Memos | None:
        from sqlalchemy import MetaData, Table, inspect

        if not self._tables:
            there = set(inspect(connection).get_table_names())
            metadata = MetaData()
            for name in (PARENT, TABLE):
                if name in there:
                    self._tables[name] = Table(name, metadata, autoload_with=connection, resolve_fks=False)
        table = self._tables.get(TABLE)
        return None if table is None else Memos(connection, table, self._tables.get(PARENT))


class Memos:
    """The memo rows inside one transaction."""

    def __init__(self, connection: Connection, table: Table, parent: Table | None) -> None:
        self._connection = connection
        self._table = table
        self._parent = parent

    def page(self, *, after: str) -> list[MemoRecord]:
        """The next rows by key."""
        from sqlalchemy import select

        key = self._table.c.user_id
        query = select(self._table).where(key > after).order_by(key).limit(_PAGE)
        return [_record(row) for row in self._connection.execute(query).mappings()]

    def read(self, key: str) -> MemoRecord | None:
        """One row."""
        from sqlalchemy import select

        row = self._connection.execute(select(self._table).where(self._table.c.user_id == key)).mappings().first()
        return None if row is None else _record(row)

    def write(self, record: MemoRecord) -> None:
        """Insert or replace one row, with its parent where a foreign key asks for one."""
        values = {
            "content": record.content,
            "version": record.version,
            "updated_at": record.updated_at.astimezone(UTC).replace(tzinfo=None),
        }
        table = self._table
        changed = self._connection.execute(table.update().where(table.c.user_id == record.key).values(values))
        if not changed.rowcount:
            self._ensure_parent(record.key)
            self._connection.execute(table.insert().values(user_id=record.key, **values))

    def delete(self, key: str) -> None:
        """Remove one row."""
        self._connection.execute(self._table.delete().where(self._table.c.user_id == key))

    def _ensure_parent(self, key: str) -> None:
        from sqlalchemy import select

        parent = self._parent
        if parent is None:
            return
        if self._connection.execute(select(parent.c.user_id).where(parent.c.user_id == key)).first() is None:
            self._connection.execute(parent.insert().values(user_id=key, **_blank(parent)))


def _blank(table: Table) -> dict[str, Any]:
    """Something for every other column that must not be empty."""
    values: dict[str, Any] = {}
    for column in table.columns:
        if column.name == "user_id" or column.primary_key or column.nullable or column.server_default is not None:
            continue
        kind = column.type.python_type
        values[column.name] = datetime.now(UTC).replace(tzinfo=None) if kind is datetime else kind()
    return values


def _record(row: Any) -> MemoRecord:
    moment: datetime = row["updated_at"]
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return MemoRecord(str(row["user_id"]), str(row["content"]), int(row["version"]), aware)


def _engine(url: str) -> Engine:
    from sqlalchemy import create_engine, make_url

    parsed = make_url(url)
    missing: ImportError | None = None
    for driver in _ASYNC_DRIVERS.get(parsed.drivername, (parsed.drivername,)):
        try:
            options: dict[str, Any] = {"timeout": 10} if driver == "sqlite" else {}
            return create_engine(parsed.set(drivername=driver), connect_args=options)
        except ImportError as e:
            missing = e
    raise missing or ImportError(parsed.drivername)
