"""Tokens of the background, added to the host's own accounts: the day's and the target's."""

from __future__ import annotations

import logging

from amrita.plugins.chat.utils.libchat import add_usage
from amrita_core.types import UniResponseUsage
from nonebot_plugin_amrita.database import InsightsModel
from nonebot_plugin_amrita.memory import CachedUserDataRepository
from sqlalchemy.exc import SQLAlchemyError

from amrita_plugin_memory.kernel.scope import UniId

_log = logging.getLogger("amrita_memory.subconscious")


async def record_usage(account: str, prompt: int, completion: int) -> None:
    """Add to InsightsModel and to the person's metadata; a database that does not answer costs only the bookkeeping."""
    if prompt + completion == 0:
        return
    usage = UniResponseUsage[int](prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)
    try:
        insights = await InsightsModel.get()
        add_usage(insights, usage)
        await insights.save()
        if not account:  # a summary of the root, for nobody in particular
            return
        repository = CachedUserDataRepository()
        metadata = await repository.get_metadata(UniId.private(account).key())
        add_usage(metadata, usage)
        await repository.update_metadata(metadata)
    except SQLAlchemyError:
        _log.exception("[Subconscious] 用量没有记入统计")
    else:
        _log.info("[Subconscious] usage updated：prompt=%d completion=%d", prompt, completion)
