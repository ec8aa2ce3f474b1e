"""Alarms as apscheduler date jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from apscheduler.jobstores.base import JobLookupError
from nonebot_plugin_apscheduler import scheduler


class SchedulerTimer:
    """One date job a name. A job that was late (sleep of the machine) still rings, once."""

    def arm(self, name: str, when: datetime, callback: Callable[[], Awaitable[None]]) -> None:
        """See Timer."""
        scheduler.add_job(
            callback, "date", run_date=when, id=name, replace_existing=True, misfire_grace_time=None, coalesce=True
        )

    def disarm(self, name: str) -> None:
        """See Timer."""
        try:
            scheduler.remove_job(name)
        except JobLookupError:
            return
