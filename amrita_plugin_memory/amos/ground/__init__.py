"""The ground floor of an AMOS root: names, paths and addresses (pure), record formats (pure), files, locks.

    names.component(name, what="工作流", suffix=".md")   strict path component or InvalidName; names.fold(name)
    layout.make_scope(actor, agent, session) -> Scope   layout.messages(scope), .profile(actor), .knowledge(owner, d, e)
    layout.relative(text) -> PurePosixPath              a path from outside, checked; layout.is_within / is_visible
    uris.to_path(uri) / candidates(uri, scope) / from_path(rel) / short(rel)
    formats.load_lines / load_records / dump_line(s) / decode / encode / load_object / dump_json
    FileRoot.open(dir)                                  blocking: call through asyncio.to_thread
        path lock read read_text read_object stamp exists names dirs scan walk
        write write_text write_json append truncate move delete delete_tree sweep
    with files.lock(rel): …   or   async with files.lock(rel, keep_alive=True): …      raises kernel Locked

A read-modify-write is one function in one thread, under ``with files.lock(rel)``. Nobody holds ``async with`` a lock
that threads of the same process wait for while it needs a thread itself.
Nothing above this storey calls open(), and nothing here knows what a session or a task means.
"""

from .files import FileRoot, Stamp
from .locks import PathLock, with_lock

__all__ = ["FileRoot", "PathLock", "Stamp", "with_lock"]
