"""The plugin as NoneBot's loader meets it: what it requires, what it is, and what it registers."""

from nonebot import get_driver, require
from nonebot.plugin import PluginMetadata

require("nonebot_plugin_localstore")
require("nonebot_plugin_apscheduler")
require("nonebot_plugin_amrita")
require("nonebot_plugin_orm")
require("nonebot_plugin_uniconf")
require("amrita.plugins.chat")
require("amrita.plugins.menu")

from amrita_plugin_memory.embedding import preload  # noqa: E402
from amrita_plugin_memory.settings import EnvSettings  # noqa: E402

from . import hooks, log, matcher, orm, tools  # noqa: E402
from .lifecycle import Lifecycle  # noqa: E402

__plugin_meta__ = PluginMetadata(
    name="长期记忆",
    description="三层长期记忆：常驻备忘录、按意思与字词检索的事实、静默期整理",
    usage="/memory 查看记忆；聊天中说「记住……」即可",
    type="application",
    homepage="https://github.com/AmritaBot/amrita_plugin_memory",
    config=EnvSettings,
    supported_adapters={"~onebot.v11"},
    extra={"models": [orm.UserMemo.__tablename__, orm.SubconsciousState.__tablename__]},
)


def _wire() -> None:
    preload()
    log.hand_to_host()
    lifecycle = Lifecycle()
    hooks.register(lifecycle)
    tools.register(lifecycle)
    matcher.register(lifecycle)
    driver = get_driver()
    driver.on_startup(lifecycle.start)
    driver.on_shutdown(lifecycle.stop)


_wire()
