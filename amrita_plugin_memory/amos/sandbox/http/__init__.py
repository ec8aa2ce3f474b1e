"""The guarded way out: which addresses are public, which URLs are acceptable, and the broker that keeps to both."""

from .broker import HttpBroker, HttpRequest, HttpResponse
from .rules import HttpPolicy

__all__ = ["HttpBroker", "HttpPolicy", "HttpRequest", "HttpResponse"]
