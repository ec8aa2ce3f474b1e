"""States of the cycles over the host's database; a change is one conditional UPDATE on the old payload."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import update
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.ext.asyncio import AsyncSession

from amrita_plugin_memory.host.orm import SubconsciousState
from amrita_plugin_memory.host.stores import database
from amrita_plugin_memory.kernel.errors import StoreUnavailable
from amrita_plugin_memory.subconscious.rules.state import parse_payload

_TRIES: Final = 20


class OrmStateStore:
    """Payloads in ``amrita_plugin_memory_subconscious_state``."""

    async def load(self, uid: str) -> dict[str, Any] | None:
        """See StateStore."""
        async with database() as session:
            row = await session.get(SubconsciousState, uid)
            return parse_payload(row.payload) if row else None

    async def change(self, uid: str, edit: Callable[[dict[str, Any] | None], dict[str, Any]]) -> dict[str, Any]:
        """See StateStore."""
        for _ in range(_TRIES):
            async with database() as session:
                changed = await self._attempt(session, uid, edit)
            if changed is not None:
                return changed
        raise StoreUnavailable("巩固循环的状态正被其他进程频繁修改，请稍后再试")

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
        except (IntegrityError, OperationalError):
            await session.rollback()
            return None
