"""Where code that a model wrote is run, and the only way it reaches the network.

Nothing a tool says is ever executed, compiled or unpickled in this process. The default engine is a separate
interpreter without CPython objects (pydantic-monty) in worker processes that the kernel confines as well; the opt-in
one is a CPython child behind a seccomp allow-list. No engine, or one that fails its self-test, means that nothing runs:
there is no switch to run anyway.

    Sandbox(SandboxOptions(...))    run, validate, engines; async, one for a root, `aclose` when done
    HttpBroker(HttpPolicy(...))     the guarded way out, also for `devices`

Floor plan: ``http/`` address rules and the broker; ``monty/`` and ``process/`` the engines; ``inside/`` what runs in
the confined processes and therefore imports the standard library only.
"""

from .http import HttpBroker, HttpPolicy, HttpRequest, HttpResponse
from .rules import EngineName, SandboxOptions
from .service import Ran, Sandbox

__all__ = [
    "EngineName",
    "HttpBroker",
    "HttpPolicy",
    "HttpRequest",
    "HttpResponse",
    "Ran",
    "Sandbox",
    "SandboxOptions",
]
