"""AMOS-2.0: a file root for memory, a library of its own that needs no bot and none of our other rooms.

    from amrita_plugin_memory.amos import AMOS

    async with await AMOS.create(root_dir="./amos_root", actor="user_1") as amos:
        await amos.add_turn("s1", "你好", "你好！")
        messages = await amos.build_messages("s1", "推荐酒店")
        other = amos.at("user_2")          # an immutable handle with the same verbs

Storeys, imports go down only: cli; facade; prompt, compression; memory; search, bundle; tasks, events, acl, monitor;
ground, errors, types.
"""

from .acl import AclEntry, AclFile, SecurityManager
from .bundle import ExportResult, ImportOptions, ImportReport, PortabilityManager
from .compression import CompressionRules
from .errors import (
    ACLDeniedError,
    AmosError,
    AssetExistsError,
    AssetNotFoundError,
    BundleError,
    CompressionError,
    EnvVarDeniedError,
    InvalidAssetError,
    LLMUnavailableError,
    MemoryURIError,
    ProtocolVersionError,
    SandboxError,
    TaskError,
    TinymemError,
)
from .events import EventBus
from .facade import AMOS, AMOSOptions, Handle, Manifest
from .ground.locks import with_lock
from .monitor import Health, Monitor, MonitorSnapshot
from .search import RetrieveOptions, SearchAllHit, SearchHit, SearchOptions
from .tasks import TaskManager, TaskManagerOptions
from .types import CacheMetadata, CompressResult, PromptMessage, SummarizeFn, UpdateWorkflowMode, WorkflowUpdateOptions

VERSION = "1.0.0"
ImportBundleOptions = ImportOptions

__all__ = [
    "AMOS",
    "VERSION",
    "ACLDeniedError",
    "AMOSOptions",
    "AclEntry",
    "AclFile",
    "AmosError",
    "AssetExistsError",
    "AssetNotFoundError",
    "BundleError",
    "CacheMetadata",
    "CompressResult",
    "CompressionError",
    "CompressionRules",
    "EnvVarDeniedError",
    "EventBus",
    "ExportResult",
    "Handle",
    "Health",
    "ImportBundleOptions",
    "ImportOptions",
    "ImportReport",
    "InvalidAssetError",
    "LLMUnavailableError",
    "Manifest",
    "MemoryURIError",
    "Monitor",
    "MonitorSnapshot",
    "PortabilityManager",
    "PromptMessage",
    "ProtocolVersionError",
    "RetrieveOptions",
    "SandboxError",
    "SearchAllHit",
    "SearchHit",
    "SearchOptions",
    "SecurityManager",
    "SummarizeFn",
    "TaskError",
    "TaskManager",
    "TaskManagerOptions",
    "TinymemError",
    "UpdateWorkflowMode",
    "WorkflowUpdateOptions",
    "with_lock",
]
