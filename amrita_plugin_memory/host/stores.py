"""The memo store over the host's database. Safe across processes: a change is one conditional UPDATE on the version."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from time import monotonic
from typing import Final, TypeVar

from nonebot_plugin_amrita.database import UserMetadata
from nonebot_plugin_orm import get_session
from sqlalchemy import select, update
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from amrita_plugin_memory.kernel.clock import Clock
from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.memo import MemoRow, Stamp

from .orm import UserMemo

T = TypeVar("T")
PATIENCE: Final = 10.0  # seconds that somebody in a chat waits for a database
_PAUSE: Final = 0.02


class OrmMemoStore:
    """Memos in ``amrita_plugin_memory_user_memo``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def stamp(self, key: str) -> Stamp | None:
        """Version and time of the row now; None when there is no row."""
        async with database() as session:
            query = select(UserMemo.version, UserMemo.updated_at).where(UserMemo.user_id == key)
            row = (await session.execute(query)).one_or_none()
            return Stamp(row[0], _aware(row[1])) if row else None

    async def read(self, key: str) -> MemoRow | None:
        """The row now; None when there is none."""
        async with database() as session:
            row = await session.get(UserMemo, key)
            return MemoRow(key, row.content, row.version, _aware(row.updated_at)) if row else None

    async def change(self, key: str, edit: Callable[[str], str]) -> MemoRow:
        """Replace the content by what ``edit`` makes of it; again when another writer came between."""
        row = await persistently(lambda session: self._attempt(session, key, edit))
        if row is None:
            raise StoreUnavailable("备忘录所在的数据库一直被占用，没有改动，请稍后再试")
        return row

    async def _attempt(self, session: AsyncSession, key: str, edit: Callable[[str], str]) -> MemoRow | None:
        old = await session.get(UserMemo, key)
        content = edit(old.content if old else "")
        now = self._clock.now()
        try:
            if old is None:
                await _ensure_parent(session, key)
                session.add(UserMemo(user_id=key, content=content, version=1, updated_at=_naive(now)))
                await session.commit()
                return MemoRow(key, content, 1, now)
            version = old.version
            result = await session.execute(
                update(UserMemo)
                .where(UserMemo.user_id == key, UserMemo.version == version)
                .values(content=content, version=version + 1, updated_at=_naive(now))
            )
            await session.commit()
            return MemoRow(key, content, version + 1, now) if result.rowcount else None  # pyright: ignore[reportAttributeAccessIssue]
        except (IntegrityError, OperationalError) as error:
            await session.rollback()
            if not came_between(error):
                raise
            return None


async def _ensure_parent(session: AsyncSession, key: str) -> None:
    """The host's row that the foreign key asks for; PostgreSQL and MySQL enforce it."""
    query = select(UserMetadata.user_id).where(UserMetadata.user_id == key)
    if (await session.execute(query)).one_or_none() is None:
        session.add(UserMetadata(user_id=key))
        await session.flush()


async def persistently(work: Callable[[AsyncSession], Awaitable[T | None]]) -> T | None:
    """What ``work`` gives, tried with fresh sessions while it gives None; None when nobody would wait any longer."""
    end = monotonic() + PATIENCE
    while True:
        async with database() as session:
            done = await work(session)
        if done is not None or monotonic() >= end:
            return done
        await asyncio.sleep(_PAUSE)


def came_between(error: DBAPIError) -> bool:
    """Whether another writer was quicker, so that the change may be tried again; a full or read-only disk is not."""
    text = str(error.orig).lower()
    return isinstance(error, IntegrityError) or any(word in text for word in ("locked", "busy", "deadlock", "serializ"))


class database:  # noqa: N801 - used as a context
    """A database session whose failures are one sentence of ours."""

    async def __aenter__(self) -> AsyncSession:
        self._opened = get_session()
        return await self._opened.__aenter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        await self._opened.__aexit__(kind, error, trace)
        if isinstance(error, SQLAlchemyError):
            raise StoreUnavailable(
                "备忘录所在的数据库暂不可用，请稍后再试或检查数据库是否已升级（ambot orm upgrade）"
            ) from error


def _naive(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
