"""Events of a root: whoever listens is told before ``publish`` returns, and one listener's fault is not another's."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from amrita_plugin_memory.kernel.clock import Clock, SystemClock, iso_seconds
from amrita_plugin_memory.kernel.errors import InvalidInput

from . import names

if TYPE_CHECKING:
    from collections.abc import Mapping

Listener: TypeAlias = Callable[..., Awaitable[Any] | Any]
ANY: Final = "*"
_log = logging.getLogger("amrita_memory.amos")


class EventStore(Protocol):
    """Where events are written down."""

    async def append(self, line: Mapping[str, object]) -> None:
        """Add one record."""
        ...


@dataclass(slots=True)
class _Entry:
    listener: Listener
    once: bool
    takes: int


@dataclass(slots=True)
class EventBus:
    """Subscribe and publish. A listener takes ``(payload, meta)`` or ``(payload)``, and may be a coroutine function.

    ``meta`` is ``{"ts", "event"}``. Listeners of ``"*"`` hear everything. A name may be written as the protocol's
    table writes it (``workflow_updated``); ``meta`` has the one name of `names.EVENTS`.
    """

    log: EventStore | None = None
    clock: Clock = field(default_factory=SystemClock)
    _entries: dict[str, list[_Entry]] = field(default_factory=dict[str, "list[_Entry]"], init=False)

    def subscribe(self, event: str, listener: Listener) -> Callable[[], None]:
        """Listen to an event; the function that ends it."""
        return self._add(event, listener, once=False)

    def once(self, event: str, listener: Listener) -> Callable[[], None]:
        """Listen to the next event of a name only."""
        return self._add(event, listener, once=True)

    def unsubscribe(self, event: str, listener: Listener) -> bool:
        """Stop listening; False when nobody listened so."""
        entries = self._entries.get(names.canonical(event), [])
        for entry in entries:
            if entry.listener == listener:
                entries.remove(entry)
                return True
        return False

    def off(self, event: str, listener: Listener | None = None) -> None:
        """Remove one listener of an event, or all of them."""
        if listener is None:
            self._entries.pop(names.canonical(event), None)
        else:
            self.unsubscribe(event, listener)

    def listener_count(self, event: str | None = None) -> int:
        """How many listen to an event, or to anything."""
        kinds = self._entries.values() if event is None else [self._entries.get(names.canonical(event), [])]
        return sum(len(entries) for entries in kinds)

    def remove_all_listeners(self) -> None:
        """Forget every listener."""
        self._entries.clear()

    async def publish(self, event: str, payload: object = None) -> None:
        """Tell every listener, then write the event down; neither a listener nor the disk can make it fail."""
        event = names.canonical(event)
        meta = {"ts": iso_seconds(self.clock.now()), "event": event}
        content: object = dict[str, object]() if payload is None else payload
        for entry in [*self._entries.get(event, ()), *self._entries.get(ANY, ())]:
            if entry.once:
                self._discard(entry)
            await _deliver(entry, content, meta)
        if self.log is not None:
            try:
                await self.log.append(names.record(event, content, meta["ts"]))
            except Exception:  # noqa: BLE001 - a border: an audit line that cannot be written must not undo what it reports
                _log.exception("event %s could not be written down", event)

    def _add(self, event: str, listener: Listener, *, once: bool) -> Callable[[], None]:
        if not event or not callable(listener):
            raise InvalidInput("订阅事件需要事件名和可调用的函数")
        entry = _Entry(listener, once, _arity(listener))
        self._entries.setdefault(names.canonical(event), []).append(entry)
        return lambda: self._discard(entry)

    def _discard(self, entry: _Entry) -> None:
        for entries in self._entries.values():
            entries[:] = [other for other in entries if other is not entry]


async def _deliver(entry: _Entry, payload: object, meta: dict[str, str]) -> None:
    try:
        answer = entry.listener(*(payload, dict(meta))[: entry.takes])
        if inspect.isawaitable(answer):
            await cast("Awaitable[object]", answer)
    except Exception:  # noqa: BLE001 - a border: one listener's fault is not another's
        _log.exception("listener of event %s failed", meta["event"])


def _arity(listener: Listener) -> int:
    try:
        signature = inspect.signature(listener)
    except (TypeError, ValueError):
        return 2
    for count in (2, 1, 0):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count
    return 2
