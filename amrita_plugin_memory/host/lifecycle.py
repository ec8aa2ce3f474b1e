"""From start-up to shutdown: opens the services once the host runs, and tells every door whether they are there."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack

from amrita_plugin_memory.app import MemoryApp, open_app
from amrita_plugin_memory.commands import Commands
from amrita_plugin_memory.kernel.clock import SystemClock
from amrita_plugin_memory.kernel.errors import AmritaMemoryError, Unavailable

from .settings import ConfigFile, data_dir, read_env
from .stores import OrmMemoStore

_log = logging.getLogger("amrita_memory.host")


class Lifecycle:
    """Holds the services between start-up and shutdown. Doors ask ``app``; nothing else is shared."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._app: MemoryApp | None = None
        self._why = "记忆插件还在启动，请稍后再试"

    @property
    def app(self) -> MemoryApp:
        """The services.

        Raises:
            Unavailable: not started yet, or the start failed; the sentence says which.

        """
        if self._app is None:
            raise Unavailable(self._why)
        return self._app

    @property
    def commands(self) -> Commands:
        """The ``/memory`` door over the services; raises as ``app`` does."""
        return Commands(facts=self.app.facts, memo=self.app.memo)

    async def start(self) -> None:
        """Read the settings and open the services. A failure leaves the bot running and is said once, in the log."""
        try:
            env, files = read_env(), ConfigFile()
            await files.safe_get_config()
            opening = open_app(
                env=env, file=lambda: files.config, data_dir=data_dir(), memo_store=OrmMemoStore(SystemClock())
            )
            self._app = await self._stack.enter_async_context(opening)
        except AmritaMemoryError as e:
            self._why = f"记忆插件没有启动：{e}"
            _log.error("[Memory] %s", self._why)
        except Exception:  # noqa: BLE001 - the border to the host: the bot must start without us
            self._why = "记忆插件没有启动，原因已写入日志"
            _log.exception("[Memory] %s", self._why)
        else:
            _log.info("[Memory] 已就绪")

    async def stop(self) -> None:
        """Close what was opened."""
        self._app, self._why = None, "记忆插件已停止"
        await self._stack.aclose()
