"""The services behind assets, tools, analysis and devices of one root, made from its options."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from amrita_plugin_memory.amos.analysis import SessionAnalyzer
from amrita_plugin_memory.amos.assets import AssetStore, RunBudget, ToolRunner
from amrita_plugin_memory.amos.assets.runner import Guard
from amrita_plugin_memory.amos.compiler import WorkflowCompiler
from amrita_plugin_memory.amos.devices import CapabilityCheck, HttpDevice, LLMConfig, LLMDevice, negotiate
from amrita_plugin_memory.amos.facade.manifest import Manifest
from amrita_plugin_memory.amos.facade.options import AMOSOptions
from amrita_plugin_memory.amos.ground import FileRoot
from amrita_plugin_memory.amos.memory import Sessions
from amrita_plugin_memory.amos.sandbox import Sandbox, SandboxOptions
from amrita_plugin_memory.amos.toolset import ToolPolicy
from amrita_plugin_memory.kernel.errors import InvalidInput

from .insight import offered

_RUNS: Final = ("require_approval", "runs_per_minute", "runs_per_day")
log = logging.getLogger("amrita_memory.amos")


@dataclass(frozen=True, slots=True)
class Workshop:
    """Services of one root; made by `build`."""

    llm: LLMDevice
    http: HttpDevice
    sandbox: Sandbox
    assets: AssetStore
    runner: ToolRunner
    compiler: WorkflowCompiler
    analyzer: SessionAnalyzer
    capabilities: CapabilityCheck
    policy: ToolPolicy = field(default_factory=ToolPolicy)

    async def close(self) -> None:
        """Stop workers and close connections."""
        await self.sandbox.aclose()
        await self.llm.aclose()


def device(options: AMOSOptions) -> LLMDevice:
    """The language model of the options; one that says it is not there without any."""
    return LLMDevice(LLMConfig.of(options.llm_config) if options.llm_config else None)


def build(
    options: AMOSOptions, llm: LLMDevice, *, files: FileRoot, manifest: Manifest, sessions: Sessions, guard: Guard
) -> Workshop:
    """Every service, wired; nothing is started and nothing is asked.

    Raises:
        InvalidInput: an unusable sandbox setting.

    """
    given = dict(options.sandbox)
    runs = {key: given.pop(key) for key in _RUNS if key in given}
    sandbox = Sandbox(SandboxOptions.of(given))
    store = AssetStore(files)
    ask = llm.ask if llm.available else None
    clock = options.clock
    return Workshop(
        llm=llm,
        http=HttpDevice(),
        sandbox=sandbox,
        assets=store,
        runner=ToolRunner(
            store,
            sandbox,
            guard,
            env_vars=manifest.env_vars,
            require_approval=bool(runs.get("require_approval", False)),
            budget=RunBudget(_count(runs, "runs_per_minute", 30), _count(runs, "runs_per_day", 1000), clock),
        ),
        compiler=WorkflowCompiler(store, sandbox, options.compile_fn or ask),
        analyzer=SessionAnalyzer(files, sessions, options.analyze_fn, options.analyze_session_fn or ask, clock),
        capabilities=_checked(manifest, llm, sandbox),
    )


def _checked(manifest: Manifest, llm: LLMDevice, sandbox: Sandbox) -> CapabilityCheck:
    check = negotiate(manifest.required_capabilities, offered(llm, sandbox.options.engine))
    if check.degraded:
        log.warning("the root asks for what is not here: %s", ", ".join(check.missing))
    return check


def _count(given: Mapping[str, Any], key: str, default: int) -> int:
    value = given.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidInput(f"sandbox 的 {key} 必须是不小于 0 的整数")
    return value
