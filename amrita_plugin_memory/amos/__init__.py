"""AMOS-2.0: a file root for memory, a library of its own that needs no bot and none of our other rooms.

    from amrita_plugin_memory.amos import AMOS

    async with await AMOS.create(root_dir="./amos_root", actor="user_1") as amos:
        await amos.add_turn("s1", "你好", "你好！")
        messages = await amos.build_messages("s1", "推荐酒店")
        other = amos.at("user_2")          # an immutable handle with the same verbs

Storeys, imports go down only: cli; facade, toolset; compiler, analysis; prompt, compression; memory; assets, search,
bundle; tasks, events, acl, monitor; devices; sandbox; ground, errors, types.
"""

from .acl import AclEntry, AclFile, SecurityManager
from .analysis import SessionAnalysis, SessionAnalyzer, TurnAnalysis, TurningPoint
from .assets import AssetExecutionResult
from .bundle import ExportResult, ImportOptions, ImportReport, PortabilityManager
from .compiler import CompileOptions
from .compression import CompressionRules
from .devices import CapabilityCheck, ChatResult, HttpDevice, HttpRequestConfig, LLMConfig, LLMDevice
from .errors import (
    ACLDeniedError,
    AmosError,
    AssetExistsError,
    AssetNotFoundError,
    BundleError,
    CompressionError,
    EnvVarDeniedError,
    HttpFailed,
    HttpRefused,
    InvalidAssetError,
    LLMUnavailableError,
    MemoryURIError,
    ProtocolVersionError,
    SandboxError,
    SandboxLimit,
    SandboxTimeout,
    SandboxUnavailable,
    TaskError,
    TinymemError,
    ToolCodeError,
    ToolResultError,
)
from .events import EventBus
from .facade import AMOS, AMOSOptions, Handle, Manifest
from .ground.locks import with_lock
from .monitor import Health, Monitor, MonitorSnapshot
from .sandbox import Sandbox, SandboxOptions
from .search import RetrieveOptions, SearchAllHit, SearchHit, SearchOptions
from .tasks import TaskManager, TaskManagerOptions
from .toolset import MemoryTools, ToolCallResult
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
    "AssetExecutionResult",
    "AssetExistsError",
    "AssetNotFoundError",
    "BundleError",
    "CacheMetadata",
    "CapabilityCheck",
    "ChatResult",
    "CompileOptions",
    "CompressResult",
    "CompressionError",
    "CompressionRules",
    "EnvVarDeniedError",
    "EventBus",
    "ExportResult",
    "Handle",
    "Health",
    "HttpDevice",
    "HttpFailed",
    "HttpRefused",
    "HttpRequestConfig",
    "ImportBundleOptions",
    "ImportOptions",
    "ImportReport",
    "InvalidAssetError",
    "LLMConfig",
    "LLMDevice",
    "LLMUnavailableError",
    "Manifest",
    "MemoryTools",
    "MemoryURIError",
    "Monitor",
    "MonitorSnapshot",
    "PortabilityManager",
    "PromptMessage",
    "ProtocolVersionError",
    "RetrieveOptions",
    "Sandbox",
    "SandboxError",
    "SandboxLimit",
    "SandboxOptions",
    "SandboxTimeout",
    "SandboxUnavailable",
    "SearchAllHit",
    "SearchHit",
    "SearchOptions",
    "SecurityManager",
    "SessionAnalysis",
    "SessionAnalyzer",
    "SummarizeFn",
    "TaskError",
    "TaskManager",
    "TaskManagerOptions",
    "TinymemError",
    "ToolCallResult",
    "ToolCodeError",
    "ToolResultError",
    "TurnAnalysis",
    "TurningPoint",
    "UpdateWorkflowMode",
    "WorkflowUpdateOptions",
    "with_lock",
]
