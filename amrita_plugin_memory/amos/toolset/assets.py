"""Tools that make, change, run and read tools, pages and apps."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

if TYPE_CHECKING:
    from amrita_plugin_memory.amos.facade import Handle

Kind = Annotated[Literal["tool", "page", "app"], Field(description="资产类型：工具、页面或应用")]
Name = Annotated[str, Field(description="资产名称，只用字母、数字、下划线和连字符", min_length=1, max_length=64)]
Definition = Annotated[str, Field(description="定义或说明，Markdown", max_length=100_000)]
Files = Annotated[
    dict[str, str],
    Field(description="代码文件，名称到内容；工具的入口是 code.py，里面定义 def run(params)", max_length=64),
]
Changes = Annotated[
    dict[str, str | None] | None, Field(description="改动的代码文件，名称到新内容；内容为 null 表示删除", max_length=64)
]
Metadata = Annotated[
    dict[str, str | int | float | bool | list[str] | None] | None,
    Field(description="附加的元数据，例如 tags", max_length=32),
]
Parameters = Annotated[dict[str, Any] | None, Field(description="工具参数的 JSON Schema，顶层 type 是 object")]
RESERVED = ("engine", "compiledFrom", "compileError", "schema")  # what a model may not say about an asset by itself


async def asset_create(
    handle: "Handle",
    *,
    asset_type: Kind,
    name: Name,
    definition: Definition,
    code_files: Files,
    metadata: Metadata = None,
    parameters: Parameters = None,
) -> Any:
    """创建一个工具、页面或应用，返回它的地址。名称已被占用时失败。"""
    own = _own(metadata)
    return await handle.create_asset(asset_type, name, definition, code_files, own, schema=parameters)


async def asset_update(
    handle: "Handle",
    *,
    asset_type: Kind,
    name: Name,
    definition: Annotated[str | None, Field(description="新的定义；不给就不改", max_length=100_000)] = None,
    code_files: Changes = None,
    metadata_updates: Metadata = None,
    parameters: Parameters = None,
) -> Any:
    """修改一个资产：旧版本会备份，版本号加一。"""
    own = _own(metadata_updates)
    return await handle.update_asset(asset_type, name, definition, code_files, own, schema=parameters)


async def asset_delete(handle: "Handle", *, asset_type: Kind, name: Name) -> Any:
    """删除一个资产和它的所有备份，不能撤销。"""
    return await handle.delete_asset(asset_type, name)


async def asset_get_definition(handle: "Handle", *, asset_type: Kind, name: Name) -> Any:
    """读取一个资产的定义。"""
    return await handle.get_asset_definition(asset_type, name)


async def asset_get_metadata(handle: "Handle", *, asset_type: Kind, name: Name) -> Any:
    """读取一个资产的元数据：版本、标签、状态、文件。"""
    return await handle.get_asset_metadata(asset_type, name)


async def asset_get_code(
    handle: "Handle",
    *,
    asset_type: Kind,
    name: Name,
    filename: Annotated[str, Field(description="文件名", min_length=1, max_length=200)] = "code.py",
) -> Any:
    """读取一个资产的代码文件。"""
    return await handle.get_asset_code(asset_type, name, filename)


async def asset_list(
    handle: "Handle",
    *,
    asset_type: Annotated[Literal["tool", "page", "app"] | None, Field(description="只列这一类")] = None,
) -> Any:
    """列出资产：类型、名称、说明、状态、标签。"""
    return await handle.list_assets_detail(asset_type)


async def asset_search(
    handle: "Handle",
    *,
    query: Annotated[str, Field(description="要找的内容", min_length=1, max_length=500)],
    asset_type: Annotated[Literal["tool", "page", "app"] | None, Field(description="只找这一类")] = None,
    top_k: Annotated[int, Field(description="最多几条", ge=1, le=50)] = 5,
) -> Any:
    """按说明和标签查找资产。"""
    return await handle.search_assets(query, asset_type, top_k)


async def asset_execute(
    handle: "Handle",
    *,
    asset_type: Annotated[Literal["tool"], Field(description="只有工具可以运行")] = "tool",
    name: Name,
    input: Annotated[dict[str, Any] | None, Field(description="传给工具的参数，工具里的 params")] = None,
    timeout_ms: Annotated[int, Field(description="时限，毫秒", ge=50, le=60_000)] = 5000,
) -> Any:
    """在沙箱里运行一个工具，返回它的结果。需要权限。"""
    return await handle.execute_tool(name, input, timeout_ms=timeout_ms)


async def tool_compile(
    handle: "Handle",
    *,
    workflow_name: Annotated[str, Field(description="已有的工作流名称", min_length=1, max_length=80)],
    tool_name: Name,
    overwrite: Annotated[bool, Field(description="工具已存在时作为新版本覆盖")] = False,
) -> Any:
    """把一个工作流编译成可以运行的工具，返回它的地址。"""
    return await handle.compile_workflow_to_tool(workflow_name, tool_name, {"overwrite": overwrite})


def _own(metadata: dict[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in (metadata or {}).items() if key not in RESERVED}
