"""Blocking calls run in threads of their own, bounded in time, and their failures put into one plain sentence.

Threads are daemons: one that never comes back can neither hold up the bot's exit nor, since it gives its place back
when it times out, starve the others. After a timeout the store is left alone for a while, then asked once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from amrita_plugin_memory.kernel.clock import Clock, SystemClock
from amrita_plugin_memory.kernel.errors import (
    AmritaMemoryError,
    InvalidInput,
    SpaceMismatch,
    StoreUnavailable,
)

T = TypeVar("T")
logger = logging.getLogger("amrita_memory.vectordb")


class TooSlow(StoreUnavailable):
    """No answer in time."""


class Stale(StoreUnavailable):
    """What this process knows of the store is out of date; opening it again may help."""


class Missing(Stale):
    """The collection is not there, or not any more."""


class Torn(Stale):
    """The vector index on the disk cannot be loaded; nothing of the collection can be read until it is put aside."""


TORN = "向量索引在上次中断时写坏了，文字都在；请启动机器人让它自己修复，或运行 ambot memory reindex"
_SIGNS_OF_TEAR = ("hnsw index", "hnsw segment", "pickle", "Error getting embedding")


class Calls:
    """A small number of blocking calls at a time, with a breaker.

    ``place`` names the store in sentences; ``pause`` seconds pass after a timeout before it is asked again;
    at most ``abandoned`` threads that never came back are borne before every call is refused.
    """

    def __init__(
        self,
        place: str,
        *,
        timeout: float,
        clock: Clock | None = None,
        pause: float = 5,
        width: int = 4,
        abandoned: int = 8,
    ) -> None:
        self._place = place
        self._timeout = timeout
        self._clock = clock or SystemClock()
        self._pause = pause
        self._slots = asyncio.Semaphore(width)
        self._most = abandoned
        self._lost = 0
        self._closed_until: float | None = None
        self._probing = False

    async def run(self, work: Callable[[], T], *, limit: float | None = None) -> T:
        """Run ``work`` in a thread and return what it returns, within ``limit`` seconds.

        Raises:
            StoreUnavailable: no answer in time, or not asked because it did not answer a moment ago.
            AmritaMemoryError: what ``work`` failed with, translated.

        """
        probe = self._admit()
        try:
            result = await self._bounded(work, self._timeout if limit is None else limit)
        except TooSlow:
            self._closed_until = self._clock.monotonic() + self._pause
            raise
        except AmritaMemoryError:
            self._closed_until = None
            raise
        finally:
            self._probing = self._probing and not probe
        self._closed_until = None
        return result

    def _admit(self) -> bool:
        """Refuse at once while the store is left alone; True when this call is the one that asks whether it is back."""
        if self._lost >= self._most:
            raise TooSlow(self._silent())
        if self._closed_until is None:
            return False
        if self._probing or self._clock.monotonic() < self._closed_until:
            raise StoreUnavailable(self._silent())
        self._probing = True
        return True

    async def _bounded(self, work: Callable[[], T], limit: float) -> T:
        try:
            await asyncio.wait_for(self._slots.acquire(), limit)
        except TimeoutError:
            raise TooSlow(self._silent()) from None
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        future.add_done_callback(self._give_back)
        threading.Thread(target=_body, args=(work, future), name="amrita-memory-store", daemon=True).start()
        done, _ = await asyncio.wait({future}, timeout=limit)
        if done:
            return self._outcome(future)
        future.remove_done_callback(self._give_back)
        self._slots.release()
        self._lost += 1
        future.add_done_callback(self._came_back)
        raise TooSlow(self._silent())

    def _give_back(self, future: asyncio.Future[T]) -> None:
        self._slots.release()
        if not future.cancelled():
            future.exception()  # a caller that was cancelled will not ask

    def _came_back(self, future: asyncio.Future[T]) -> None:
        self._lost -= 1
        if not future.cancelled():
            future.exception()

    def _outcome(self, future: asyncio.Future[T]) -> T:
        error = future.exception()
        if error is None:
            return future.result()
        raise translate(error, self._place) from error

    def _silent(self) -> str:
        return f"{self._place}没有及时回应，请稍后再试；一直这样请检查它是否正常运行"


def _body(work: Callable[[], T], future: asyncio.Future[T]) -> None:
    loop = future.get_loop()
    try:
        settle = partial(_succeed, future, work())
    except BaseException as error:  # noqa: BLE001 - the border of the thread: all travels to the caller, Rust panics too
        settle = partial(_fail, future, error)
    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        logger.debug("the loop was closed before a call to the store came back")


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))


def translate(error: BaseException, place: str) -> BaseException:
    """The error of our tree for what Chroma, its HTTP client or the disk raised; a bug of ours stays as it is."""
    if isinstance(error, AmritaMemoryError):
        return error
    origin = type(error).__module__.partition(".")[0]
    if origin == "chromadb":
        return _from_chroma(error, place)
    if origin in ("httpx", "httpcore"):
        return _from_http(error, place)
    if isinstance(error, json.JSONDecodeError):
        return StoreUnavailable(f"{place}的回答不是 Chroma 的格式，请检查 VECTOR_DB_SERVER 与端口")
    if isinstance(error, ValueError):
        return InvalidInput("向量库不接受这条数据，请检查内容和标签")
    if isinstance(error, OSError) or type(error) in (Exception, RuntimeError):
        # Chroma's HTTP client raises a bare Exception for an answer it cannot read; Rust panics arrive as RuntimeError.
        return StoreUnavailable(f"{place}出错，请查看日志；一直这样请检查磁盘和服务")
    return error


def _from_http(error: BaseException, place: str) -> AmritaMemoryError:
    if type(error).__name__.endswith("Timeout"):
        return TooSlow(f"{place}没有及时回应，请稍后再试；一直这样请检查它是否正常运行")
    return StoreUnavailable(f"连不上{place}，请检查服务是否在运行以及 VECTOR_DB_SERVER 的地址和端口")


def _from_chroma(error: BaseException, place: str) -> AmritaMemoryError:
    name, text = type(error).__name__, str(error)
    if "dimension" in text:
        return SpaceMismatch("向量维度与已存数据不一致，请运行 ambot memory reindex")
    if name == "NotFoundError":
        return Missing(f"{place}里没有要找的集合，请运行 ambot memory status 查看")
    if any(sign in text for sign in _SIGNS_OF_TEAR):
        return Torn(TORN)
    if "Error finding id" in text or "does not exist" in text:
        return Stale(f"{place}的索引与数据不一致，请运行 ambot memory reindex")
    if name in ("ChromaAuthError", "AuthorizationError"):
        return StoreUnavailable(f"{place}拒绝了访问，请检查 VECTOR_DB_REMOTE_HEADERS、租户和数据库")
    if name == "InvalidArgumentError":
        return InvalidInput("向量库不接受这条数据，请检查内容和标签")
    return StoreUnavailable(f"{place}出错，请查看日志；一直这样请检查磁盘和服务")
