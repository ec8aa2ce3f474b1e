"""Tools that write and read what is remembered about the user: soul, profile, summary, workflows, knowledge, tags."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

if TYPE_CHECKING:
    from amrita_plugin_memory.amos.facade import Handle

Text = Annotated[str, Field(description="内容，Markdown", max_length=200_000)]
WorkflowName = Annotated[str, Field(description="工作流名称", min_length=1, max_length=80)]
Domain = Annotated[str, Field(description="知识领域，例如 旅行", min_length=1, max_length=80)]
Entity = Annotated[str, Field(description="知识条目名称，例如 杭州", min_length=1, max_length=80)]
Tag = Annotated[str, Field(description="标签，一行以内", min_length=1, max_length=64)]
RelPath = Annotated[str, Field(description="文件在根目录内的相对路径，或 amos:// 地址", min_length=1, max_length=500)]
Session = Annotated[str | None, Field(description="会话编号；不给就是当前会话", max_length=200)]


async def memory_replace_soul(handle: "Handle", *, content: Text) -> Any:
    """整体替换 AI 的人格设定。原有内容会被覆盖，只在用户明确要求时使用。"""
    await handle.replace_soul(content)


async def memory_replace_profile(handle: "Handle", *, content: Text) -> Any:
    """整体替换用户画像。原有内容会被覆盖；只加一条时用 memory_append_profile。"""
    await handle.replace_profile(content)


async def memory_replace_summary(handle: "Handle", *, content: Text, session_id: Session = None) -> Any:
    """整体替换一个会话的摘要。"""
    await handle.replace_summary(session_id, content)


async def memory_append_profile(
    handle: "Handle",
    *,
    content: Annotated[str, Field(description="一条关于用户的稳定信息", min_length=1, max_length=2000)],
    section: Annotated[str, Field(description="写在哪个小节", min_length=1, max_length=80)] = "正文",
) -> Any:
    """给用户画像加一条稳定信息，例如职业、偏好、忌口。"""
    await handle.append_profile(section, content)


async def memory_remove_profile_fact(
    handle: "Handle",
    *,
    keyword: Annotated[str, Field(description="要删掉的那几行里都有的词", min_length=1, max_length=200)],
) -> Any:
    """从用户画像里删掉含有某个词的条目，用户说某件事不再成立时使用。"""
    return await handle.remove_profile_fact(keyword)


async def memory_append_summary_point(
    handle: "Handle",
    *,
    point: Annotated[str, Field(description="一句要点", min_length=1, max_length=500)],
    session_id: Session = None,
) -> Any:
    """给会话摘要加一句要点。"""
    await handle.append_summary_point(point, session_id)


async def memory_add_workflow(handle: "Handle", *, name: WorkflowName, content: Text) -> Any:
    """保存一个可复用的工作流；同名的会被覆盖。"""
    await handle.add_workflow(name, content)


async def memory_get_workflow(handle: "Handle", *, name: WorkflowName) -> Any:
    """读取一个工作流的全文；没有时为 null。"""
    return await handle.get_workflow(name)


async def memory_list_workflows(handle: "Handle") -> Any:
    """列出所有工作流的名称。"""
    return await handle.list_workflows()


async def memory_update_workflow(
    handle: "Handle",
    *,
    name: WorkflowName,
    content: Text,
    mode: Annotated[
        Literal["overwrite", "append", "patch"], Field(description="覆盖、追加，或只替换一个小节")
    ] = "overwrite",
    patch_heading: Annotated[str | None, Field(description="patch 方式替换哪个标题，写完整", max_length=200)] = None,
) -> Any:
    """修改一个已有的工作流。"""
    await handle.update_workflow(name, content, mode, patch_heading)


async def memory_delete_workflow(handle: "Handle", *, name: WorkflowName) -> Any:
    """删除一个工作流；返回是否真的删了。"""
    return await handle.delete_workflow(name)


async def memory_add_knowledge(handle: "Handle", *, domain: Domain, entity: Entity, content: Text) -> Any:
    """保存一条知识；同名的会被覆盖。"""
    await handle.add_knowledge(domain, entity, content)


async def memory_get_knowledge(handle: "Handle", *, domain: Domain, entity: Entity) -> Any:
    """读取一条知识的全文；没有时为 null。"""
    return await handle.get_knowledge(domain, entity)


async def memory_update_knowledge(handle: "Handle", *, domain: Domain, entity: Entity, content: Text) -> Any:
    """整体更新一条知识。"""
    await handle.update_knowledge(domain, entity, content)


async def memory_delete_knowledge(handle: "Handle", *, domain: Domain, entity: Entity) -> Any:
    """删除一条知识；返回是否真的删了。"""
    return await handle.delete_knowledge(domain, entity)


async def memory_list_knowledge(
    handle: "Handle", *, domain: Annotated[str | None, Field(description="只列这个领域", max_length=80)] = None
) -> Any:
    """列出知识条目，形如 领域/条目。"""
    return await handle.list_knowledge(domain)


async def memory_add_tag(handle: "Handle", *, rel_path: RelPath, tag: Tag) -> Any:
    """给一个文件加标签。"""
    await handle.add_tag(rel_path, tag)


async def memory_remove_tag(handle: "Handle", *, rel_path: RelPath, tag: Tag) -> Any:
    """去掉一个文件的标签。"""
    await handle.remove_tag(rel_path, tag)


async def memory_list_by_tag(handle: "Handle", *, tag: Tag) -> Any:
    """列出带某个标签的文件。"""
    return await handle.list_by_tag(tag)
