"""The tools of a run. They stand in a set of their own and are never offered in a chat."""

from typing import Final

from amrita_plugin_memory.kernel.toolspec import ToolSpec, describe

from . import knowledge, memory, person

MEMORY: Final = (
    memory.subconscious_read_memory,
    memory.subconscious_write_memory,
    memory.subconscious_update_memory,
    memory.subconscious_delete_memory,
    memory.subconscious_list_memory,
    memory.subconscious_duplicate_helper,
    memory.subconscious_get_memory_stats,
    memory.subconscious_update_memo,
)
KNOWLEDGE: Final = (
    knowledge.subconscious_knowledge_list,
    knowledge.subconscious_knowledge_read,
    knowledge.subconscious_knowledge_create,
    knowledge.subconscious_knowledge_update,
    knowledge.subconscious_knowledge_delete,
    knowledge.subconscious_knowledge_search,
    knowledge.subconscious_read_suggestions,
)
PERSON: Final = (
    person.subconscious_get_context,
    person.subconscious_read_chat_context,
    person.subconscious_read_sessions,
    person.subconscious_get_profile,
    person.subconscious_update_profile,
    person.subconscious_send_to_user,
    person.subconscious_iter_stop,
)
TOOLBOX: Final[tuple[ToolSpec, ...]] = tuple(describe(one) for one in (*MEMORY, *KNOWLEDGE, *PERSON))

__all__ = ["TOOLBOX"]
