"""Errors of the AMOS library, under the names the reference implementation gives them.

AmosError (= TinymemError)
├── MemoryURIError        an ``amos://`` address that names nothing in the protocol
├── AssetNotFoundError    no such asset for this scope
├── AssetExistsError      the name is taken
├── InvalidAssetError     an asset that cannot be stored
├── CompressionError      a session could not be compressed; nothing was changed
├── LLMUnavailableError   the model that should summarise, analyse or compile does not answer
├── ACLDeniedError        the access list does not allow this
├── TaskError             a task that cannot be queued or run
├── SandboxError          tool code failed or broke a bound
│   ├── EnvVarDeniedError a placeholder that is not on the allow-list
│   ├── SandboxUnavailable no engine that passed its self-test; nothing was run
│   ├── SandboxTimeout     the code did not end in time and was stopped
│   ├── SandboxLimit       the code passed a bound of memory, output or size
│   ├── ToolCodeError      the code raised, or cannot be read
│   └── ToolResultError    the code ended with something that is not JSON
├── HttpRefused           an address, port, scheme or host that the policy forbids; nothing was sent
├── HttpFailed            the other end did not answer as it should
├── BundleError           a package that cannot be read or would do harm
└── ProtocolVersionError  a root or package of another protocol version
"""

from __future__ import annotations

from amrita_plugin_memory.kernel.errors import (
    AmritaMemoryError,
    Corrupt,
    Forbidden,
    InvalidInput,
    LimitReached,
    NotFound,
    Unavailable,
)


class AmosError(AmritaMemoryError):
    """Root of the errors that only the AMOS library raises."""


TinymemError = AmosError


class MemoryURIError(AmosError, InvalidInput):
    """An ``amos://`` address that names nothing in the protocol."""


class AssetNotFoundError(AmosError, NotFound):
    """No asset of this type and name in the caller's scope."""


class AssetExistsError(AmosError, InvalidInput):
    """An asset of this type and name is there already."""


class InvalidAssetError(AmosError, InvalidInput):
    """An asset that cannot be stored as given."""


class CompressionError(AmosError):
    """A session could not be compressed; its turns are all still there."""


class LLMUnavailableError(AmosError, Unavailable):
    """The model that was asked does not answer, or none was given."""


class ACLDeniedError(AmosError, Forbidden):
    """The access list does not allow this."""


class TaskError(AmosError, InvalidInput):
    """A task that cannot be queued or run."""


class SandboxError(AmosError):
    """Tool code failed, or broke a bound of the sandbox."""


class EnvVarDeniedError(SandboxError, Forbidden):
    """A placeholder names a variable that is not on the allow-list."""


class BundleError(AmosError, InvalidInput):
    """A package that cannot be read, or that would do harm if it were."""


class ProtocolVersionError(AmosError, Corrupt):
    """A root or a package of another protocol version."""


class SandboxUnavailable(SandboxError, Unavailable):
    """No engine is there that passed its self-test; nothing was run."""


class SandboxTimeout(SandboxError):
    """The code did not end in time and was stopped."""


class SandboxLimit(SandboxError, LimitReached):
    """The code passed a bound of memory, output or size."""


class ToolCodeError(SandboxError):
    """The code raised, or cannot be read as code."""


class ToolResultError(SandboxError):
    """The code ended with something that cannot be given back as JSON."""


class HttpRefused(AmosError, Forbidden):
    """A scheme, host, port or address that the policy forbids; nothing was sent to it."""


class HttpFailed(AmosError, Unavailable):
    """The other end did not answer, or not as HTTP wants it."""
