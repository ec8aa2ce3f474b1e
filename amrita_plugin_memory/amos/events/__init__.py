"""What happened in a root: told to whoever listens, and written down without contents.

EventBus(log=EventLog(files))    subscribe, once, off, unsubscribe, publish (awaited)
EVENTS                           the names
"""

from .bus import EventBus, Listener
from .log import EventLog
from .names import EVENTS

__all__ = ["EVENTS", "EventBus", "EventLog", "Listener"]
