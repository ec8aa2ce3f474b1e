"""A tool as the host's core writes it."""

from typing import Any

from amrita_core import FunctionDefinitionSchema, FunctionParametersSchema

from amrita_plugin_memory.kernel.toolspec import ToolSpec


def definition(tool: ToolSpec) -> FunctionDefinitionSchema:
    """The tool's schema as the host writes it."""
    parameters: dict[str, Any] = tool.parameters
    return FunctionDefinitionSchema(
        name=tool.name,
        description=tool.description,
        parameters=FunctionParametersSchema.model_validate(parameters),
    )
