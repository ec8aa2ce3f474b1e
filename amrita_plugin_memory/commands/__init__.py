"""`/memory …`: parsed, dispatched to the services, rendered as text. Knows no bot framework."""

from .parse import Request, parse
from .run import Commands

__all__ = ["Commands", "Request", "parse"]
