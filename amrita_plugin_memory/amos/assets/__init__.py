"""Tools, pages and apps that a model makes for itself: plain files that are never part of a prompt's stable prefix.

    AssetStore(files)                      create, read, update, delete, list; blocking, the user's own over the shared
    ToolRunner(store, sandbox, guard)      one tool, one run: active? approved? allowed? within its budget? then go
    rules                                  names, file names, metadata, versions, schemas (pure)

What may be written is decided here; who may, by the access list; how code is run, by the sandbox.
"""

from .budget import RunBudget
from .rules import ASSET_TYPES, AssetDraft, AssetUpdate
from .runner import AssetExecutionResult, ToolRunner
from .store import Asset, AssetStore

__all__ = [
    "ASSET_TYPES",
    "Asset",
    "AssetDraft",
    "AssetExecutionResult",
    "AssetStore",
    "AssetUpdate",
    "RunBudget",
    "ToolRunner",
]
