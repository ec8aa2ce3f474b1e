"""Hostile answers: values, exceptions and forged replies."""

from __future__ import annotations

from .model import EFFECTS, raw, tried

CLEAN = frozenset(("bleed", "dead"))

RESULTS = (
    raw("answer_of_megabytes", "__return_value__ = 'x' * 50000000\n", seconds=3.0, quick=True),
    raw("answer_too_deep", "x = []\nfor _ in range(5000):\n    x = [x]\n__return_value__ = x\n", quick=True),
    raw("answer_in_a_circle", "x = {}\nx['x'] = x\n__return_value__ = x\n"),
    raw("answer_that_multiplies", "x = ['a' * 1000]\nfor _ in range(40):\n    x = [x, x]\n__return_value__ = x\n", seconds=3.0),
    raw("answer_is_code", "__return_value__ = lambda: 1\n"),
    raw("answer_of_odd_types", "__return_value__ = [b'x', float('nan'), float('inf'), {1, 2}, 1j]\n"),
    raw("answer_with_odd_keys", "__return_value__ = {(1, 2): 3, None: 4, 1: 5}\n"),
    raw("answer_with_half_a_character", "__return_value__ = '\\ud800'\n"),
    raw("answer_that_lies_about_itself", """
        class S(str):
            def __len__(self): return 0
            def encode(self, *a): raise SystemExit(1)
        class D(dict):
            def items(self):
                while True: pass
            def __iter__(self):
                while True: pass
        __return_value__ = {'s': S('x'), 'd': D(a=1)}
    """, seconds=1.0),
    raw("answer_that_unpickles", "class R:\n    def __reduce__(self):\n        import os\n        return (os.system, ('touch ' + params['canary'],))\n__return_value__ = R()\n"),
    tried("unpickle_a_program", "import pickle\nreturn str(pickle.loads(b\"cos\\nsystem\\n(S'touch %s'\\ntR.\" % params['canary'].encode()))"),
    raw("error_whose_text_never_ends", "class E(Exception):\n    def __str__(self):\n        while True: pass\n    __repr__ = __str__\ndef run(params):\n    raise E('x')\n", seconds=1.0),
    raw("error_of_megabytes", "def run(params):\n    raise ValueError('z' * 30000000)\n", seconds=3.0, quick=True),
    raw("error_that_is_no_exception", "class E(BaseException):\n    def __str__(self): raise SystemExit(9)\ndef run(params):\n    raise E()\n"),
    raw("error_that_carries_a_file", "def run(params):\n    raise ValueError(open(params['secret']).read())\n"),
    raw("forged_reply", """
        def run(params):
            import os, json
            said = json.dumps({'result': '"WON"', 'output': '', 'ok': True, 'value': 'WON'}).encode()
            for fd in range(1, 16):
                for frame in (said + b'\\n', len(said).to_bytes(4, 'big') + said, b'\\xff' * 8):
                    try: os.write(fd, frame)
                    except Exception: pass
            os._exit(0)
    """, forbidden=EFFECTS - {"won"}),
    raw("module_state_stays", "import json\njson.kept = 'BLEED'\njson.dumps = lambda *a, **k: 'BLEED'\n__return_value__ = 1\n", "import json\n__return_value__ = str(getattr(json, 'kept', 'clean')) + json.dumps([1])\n", forbidden=CLEAN, quick=True),
    raw("global_state_stays", "KEPT = 'BLEED'\n__return_value__ = 1\n", "try:\n    __return_value__ = KEPT\nexcept NameError:\n    __return_value__ = 'clean'\n", forbidden=CLEAN, quick=True),
    tried("file_state_stays", "import tempfile, os\nname = os.path.join(tempfile.gettempdir(), 'arena_bleed')\nif os.path.exists(name): return open(name).read()\nopen(name, 'w').write('BLEED')\nreturn 1", forbidden=CLEAN),
    raw("parameters_are_shared", "def run(params):\n    params['nested'].append('BLEED')\n    return 1\n", "def run(params):\n    return params['nested']\n", forbidden=CLEAN, quick=True),
)  # fmt: skip
