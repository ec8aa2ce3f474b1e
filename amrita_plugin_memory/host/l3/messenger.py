"""The way to a person: by the bot that person last spoke with, always as a private message."""

from __future__ import annotations

import logging

from nonebot import get_bots
from nonebot.adapters.onebot.v11 import Bot
from nonebot.exception import AdapterException

_log = logging.getLogger("amrita_memory.subconscious")


class BotMessenger:
    """Remembers which bot each person spoke with; with one bot connected there is no question."""

    def __init__(self) -> None:
        self._bot_of: dict[str, str] = {}

    def met(self, account: str, self_id: str) -> None:
        """Remember that this person speaks with this bot."""
        self._bot_of[account] = self_id

    async def send(self, account: str, text: str) -> bool:
        """See Messenger."""
        bots = {self_id: bot for self_id, bot in get_bots().items() if isinstance(bot, Bot)}
        known = self._bot_of.get(account)
        bot = bots.get(known) if known else next(iter(bots.values())) if len(bots) == 1 else None
        if bot is None or not account.isdigit():
            return False
        try:
            await bot.send_private_msg(user_id=int(account), message=text)
        except AdapterException as e:
            _log.warning("[Subconscious] 主动消息没有送达：%s", type(e).__name__)
            return False
        return True
