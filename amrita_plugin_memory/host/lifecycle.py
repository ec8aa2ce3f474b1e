"""From start-up to shutdown: opens the services once the host runs, and tells every door whether they are there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

from amrita.plugins.chat.config import config_manager
from amrita.plugins.chat.utils.sql import make_uni_id

from amrita_plugin_memory.app import L3Ports, MemoryApp, open_app
from amrita_plugin_memory.commands import Commands
from amrita_plugin_memory.kernel.clock import SystemClock, local_zone
from amrita_plugin_memory.kernel.errors import AmritaMemoryError, Unavailable
from amrita_plugin_memory.kernel.hostkeys import key_trouble
from amrita_plugin_memory.ops.jobs.place import Place
from amrita_plugin_memory.ops.jobs.startup import until_known
from amrita_plugin_memory.settings import FileSettings

from .checkin import check, is_waited_for, place_of
from .l3.messenger import BotMessenger
from .l3.reasoner import CoreReasoner
from .l3.states import OrmStateStore
from .l3.timer import SchedulerTimer
from .settings import config_dir, data_dir, open_file, read_env
from .stores import OrmMemoStore

_log = logging.getLogger("amrita_memory.host")


class Lifecycle:
    """Holds the services between start-up and shutdown. Doors ask ``app``; nothing else is shared."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._app: MemoryApp | None = None
        self._why = "记忆插件还在启动，请稍后再试"
        self._background: set[asyncio.Task[None]] = set()
        self.messenger = BotMessenger()

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
        app = self.app
        return Commands(facts=app.facts, memo=app.memo, erasure=app.erasure, subconscious=app.subconscious)

    @property
    def is_open(self) -> bool:
        """Whether the services are there; without them no memory tool is offered to a model."""
        return self._app is not None

    @property
    def has_knowledge(self) -> bool:
        """Whether the knowledge base is there to be offered to a model."""
        return self._app is not None and self._app.knowledge is not None

    async def start(self) -> None:
        """Read the settings and open the services. A failure leaves the bot running and is said once, in the log."""
        try:
            trouble = key_trouble(make_uni_id)
            if trouble is not None:
                _log.error("[Memory] %s", trouble)
            files = await open_file()
            await self._open(lambda: files.config)
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
        for task in self._background:
            task.cancel()
        await self._stack.aclose()

    async def _open(self, file: Callable[[], FileSettings]) -> None:
        env = read_env()
        opening = open_app(
            env=env,
            file=file,
            data_dir=data_dir(),
            memo_store=OrmMemoStore(SystemClock()),
            l3=L3Ports(
                reasoner=CoreReasoner(extra_tools=lambda: file().subconscious.allowed_tools),
                timer=SchedulerTimer(),
                messenger=self.messenger,
                states=OrmStateStore(),
                config_dir=config_dir(),
                zone=local_zone(),
                character=_character,
            ),
        )
        app = await self._stack.enter_async_context(opening)
        place = place_of(app, env=env, file=file(), data_dir=data_dir())
        if is_waited_for(place):
            checked = await check(place)
            if not checked.load:
                await self._stack.aclose()
                raise Unavailable("；".join(checked.said) or "嵌入模型与记忆库不一致（EMBED_MISMATCH_POLICY=refuse）")
            self.later(self._repair(app))
        else:
            self.later(self._settle(app, place))
        self._app = app

    async def _settle(self, app: MemoryApp, place: Place) -> None:
        checked = await check(place)
        await self._repair(app)
        await until_known(checked, lambda: check(place), sleep=asyncio.sleep)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the reply; a failure is logged and disturbs nobody."""
        task = asyncio.get_running_loop().create_task(_quietly(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _repair(self, app: MemoryApp) -> None:
        """Bring the knowledge base's vectors in step, beside the running bot."""
        if app.knowledge is None:
            return
        try:
            done = await app.knowledge.repair()
        except AmritaMemoryError as e:
            _log.warning("[Memory] 知识库这次没有检查：%s", e)
        else:
            _log.info("[Memory] 知识库已检查：补 %d，清 %d，缺 %d", done.embedded, done.removed, done.missing)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except AmritaMemoryError as e:
        _log.warning("[Memory] 后台工作没有完成：%s", e)
    except Exception:  # noqa: BLE001 - the border of the job: nobody awaits it
        _log.exception("[Memory] 后台工作出错")


async def _character() -> str:
    """The host's character prompt for private chats."""
    return str(config_manager.private_train.get("content") or "").strip()
