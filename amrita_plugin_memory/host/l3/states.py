"""States of the cycles over the host's database; a change is one conditional UPDATE on the old payload."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import update
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import AsyncSession

from amrita_plugin_memory.host.orm import SubconsciousState
from amrita_plugin_memory.host.stores import came_between, database, persistently
from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.subconscious.rules.state import parse_payload


class OrmStateStore:
    """Payloads in ``amrita_plugin_memory_subconscious_state``."""

    async def load(self, uid: str) -> dict[str, Any] | None:
        """See StateStore."""
        async with database() as session:
            row = await session.get(SubconsciousState, uid)
            return parse_payload(row.payload) if row else None

    async def change(self, uid: str, edit: Callable[[dict[str, Any] | None], dict[str, Any]]) -> dict[str, Any]:
        """See StateStore."""
        changed = await persistently(lambda session: self._attempt(session, uid, edit))
        if changed is None:
            raise StoreUnavailable("巩固循环的状态所在的数据库一直被占用，没有改动，请稍后再试")
        return changed

    async def _attempt(
        self, session: AsyncSession, uid: str, edit: Callable[[dict[str, Any] | None], dict[str, Any]]
    ) -> dict[str, Any] | None:
        row = await session.get(SubconsciousState, uid)
        old = row.payload if row else None
        new = edit(None if old is None else parse_payload(old))
        payload, now = json.dumps(new, ensure_ascii=False), datetime.now(UTC).replace(tzinfo=None)
        try:
            if old is None:
                session.add(SubconsciousState(uid=uid, payload=payload, updated_at=now))
                await session.commit()
                return new
            done = await session.execute(
                update(SubconsciousState)
                .where(SubconsciousState.uid == uid, SubconsciousState.payload == old)
                .values(payload=payload, updated_at=now)
            )
            await session.commit()
            return new if done.rowcount else None  # pyright: ignore[reportAttributeAccessIssue]
        except (IntegrityError, OperationalError) as error:
            await session.rollback()
            if not came_between(error):
                raise
            return None
