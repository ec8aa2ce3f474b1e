"""Running one handler: with a time limit that holds, and a way to stop it."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from .record import Task

Handler: TypeAlias = Callable[["Task"], Awaitable[Any] | Any]


class Abandoned(Exception):
    """A handler that is no coroutine went over its time; its thread cannot be stopped and may still be at work."""


async def call(handler: Handler, task: Task) -> object:
    """The result of a handler within the task's ``timeout``.

    A coroutine is cancelled when its time is over. Anything else runs in a thread of its own (a daemon, so that it
    never keeps the process from ending) and is left behind.

    Raises:
        TimeoutError: the coroutine took too long.
        Abandoned: the thread took too long; running it again would run it twice at once.

    """
    seconds = task.timeout / 1000 if task.timeout > 0 else None
    if _is_async(handler):
        async with asyncio.timeout(seconds):
            return await handler(task)
    try:
        async with asyncio.timeout(seconds):
            result = await _in_thread(handler, task)
    except TimeoutError:
        raise Abandoned from None
    if inspect.isawaitable(result):
        async with asyncio.timeout(seconds):
            return await result
    return result


def _is_async(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004


async def _in_thread(handler: Handler, task: Task) -> Any:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def tell(result: object, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def run() -> None:
        result: object = None
        error: BaseException | None = None
        try:
            result = handler(task)
        except Exception as raised:  # noqa: BLE001 - a border: whatever a handler raises is its outcome
            error = raised
        except BaseException as raised:  # noqa: BLE001 - SystemExit in a thread must not look like success
            error = RuntimeError(type(raised).__name__)
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, daemon=True, name=f"amos-task-{task.task_id}").start()
    return await done
