"""From a workflow in words to a tool that runs: `WorkflowCompiler` over a model, or a template when there is none."""

from .service import CompileFn, CompileOptions, WorkflowCompiler

__all__ = ["CompileFn", "CompileOptions", "WorkflowCompiler"]
