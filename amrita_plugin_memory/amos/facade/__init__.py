"""The doors of the library: `AMOS` with its default handle, and the immutable `Handle` for one scope.

Each verb checks names, asks the access list, does its work in a thread, tells the indexes and publishes its event, in
this order; what a verb means is decided one storey down. Tools, sandbox, compiler, analysis and packages plug in as
further groups of verbs over the same `Root`.
"""

from .amos import AMOS
from .handle import Handle
from .manifest import Manifest
from .options import AMOSOptions

__all__ = ["AMOS", "AMOSOptions", "Handle", "Manifest"]
