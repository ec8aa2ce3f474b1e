"""What the background may spend in a day. Pure.

A day is a date in the zone of the moment that is handed in; a new date starts from zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and messages of one day (``2026-11-30``)."""

    day: str = ""
    tokens: int = 0
    messages: int = 0

    def today(self, now: datetime) -> Spent:
        """The same day's account, or a fresh one."""
        day = now.date().isoformat()
        return self if self.day == day else Spent(day)

    def with_tokens(self, now: datetime, tokens: int) -> Spent:
        """The account after a run."""
        account = self.today(now)
        return replace(account, tokens=account.tokens + max(tokens, 0))

    def with_message(self, now: datetime) -> Spent:
        """The account after one message to the user."""
        account = self.today(now)
        return replace(account, messages=account.messages + 1)

    def tokens_left(self, now: datetime, budget: int) -> int | None:
        """Tokens that may still be spent today; None when ``budget`` is 0, which means no bound."""
        return None if budget == 0 else max(budget - self.today(now).tokens, 0)

    def may_send(self, now: datetime, cap: int) -> bool:
        """Whether one more message fits into today."""
        return self.today(now).messages < cap
