"""What honest tool code wants to do: (name, code, answer); every one gets ``{"x": 1}``."""

from __future__ import annotations

from typing import Any

FEATURES: tuple[tuple[str, str, Any], ...] = (
    ("run function", "def run(params):\n    return {'y': params['x'] + 1}\n", {"y": 2}),
    ("top level value", "__return_value__ = params['x'] * 2\n", 2),
    ("nothing returned", "x = 1\n", None),
    ("helper function", "def inc(n): return n + 1\ndef run(params):\n    return inc(params['x'])\n", 2),
    ("closure", "def outer():\n    n = 0\n    def inner():\n        nonlocal n\n        n += 1\n        return n\n    inner()\n    return inner()\n__return_value__ = outer()\n", 2),
    ("class", "class A:\n    def __init__(self, v): self.v = v\n    def get(self): return self.v\n__return_value__ = A(3).get()\n", 3),
    ("inheritance", "class A:\n    def f(self): return 1\nclass B(A):\n    def f(self): return super().f() + 1\n__return_value__ = B().f()\n", 2),
    ("own exception", "class E(Exception): pass\ntry:\n    raise E('a')\nexcept E as e:\n    __return_value__ = str(e)\n", "a"),
    ("generator", "def g():\n    for i in range(3): yield i\n__return_value__ = list(g())\n", [0, 1, 2]),
    ("del", "d = {'a': 1, 'b': 2}\ndel d['a']\n__return_value__ = d\n", {"b": 2}),
    ("property", "class A:\n    @property\n    def p(self): return 5\n__return_value__ = A().p\n", 5),
    ("comprehensions", "__return_value__ = sorted({k: v for k, v in zip('ab', [1, 2])}.items())\n", [["a", 1], ["b", 2]]),
    ("try and finally", "x = []\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    x.append(1)\nfinally:\n    x.append(2)\n__return_value__ = x\n", [1, 2]),
    ("f-string", "__return_value__ = f'{3.14159:.2f}|{7:>3}|{1!r}'\n", "3.14|  7|1"),
    ("str.format", "__return_value__ = '{:>4}{a}'.format(1, a=2)\n", "   12"),
    ("match", "match params:\n    case {'x': v}: __return_value__ = v\n    case _: __return_value__ = None\n", 1),
    ("dataclass", "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int = 1\n__return_value__ = P(4).x\n", 4),
    ("enum", "from enum import Enum\nclass C(Enum):\n    A = 1\n__return_value__ = C.A.value\n", 1),
    ("async", "import asyncio\nasync def f(): return 7\n__return_value__ = asyncio.run(f())\n", 7),
    ("print", "print('hi')\n__return_value__ = 1\n", 1),
    ("big integer", "__return_value__ = 2 ** 70\n", 2**70),
    ("tuple", "__return_value__ = (1, 2)\n", [1, 2]),
    ("json", "import json\n__return_value__ = json.loads(json.dumps({'中': [1, None, True]}))\n", {"中": [1, None, True]}),
    ("re", "import re\n__return_value__ = re.findall(r'\\d+', 'a1b22')\n", ["1", "22"]),
    ("re with function", "import re\n__return_value__ = re.sub(r'\\d', lambda m: str(int(m.group()) + 1), 'a1')\n", "a2"),
    ("datetime", "from datetime import datetime, timedelta\n__return_value__ = (datetime(2026, 1, 1) + timedelta(days=1)).isoformat()\n", "2026-01-02T00:00:00"),
    ("math", "import math\n__return_value__ = [math.floor(2.5), math.gcd(4, 6)]\n", [2, 2]),
    ("random", "import random\n__return_value__ = random.Random(1).randint(1, 1)\n", 1),
    ("collections", "from collections import Counter\n__return_value__ = Counter('aab').most_common(1)\n", [["a", 2]]),
    ("hash and base64", "import hashlib, base64\n__return_value__ = base64.b64encode(hashlib.md5(b'a').digest()).decode()\n", "DMF1ucDxtqgxw5niaXcmYQ=="),
    ("statistics", "import statistics\n__return_value__ = statistics.mean([1, 2, 3])\n", 2),
    ("urllib.parse", "import urllib.parse\n__return_value__ = urllib.parse.quote('中 ') + urllib.parse.urlencode({'a': 1})\n", "%E4%B8%AD%20a=1"),
    ("html", "import html\n__return_value__ = html.unescape('&lt;')\n", "<"),
    ("gbk", "__return_value__ = '中'.encode('gbk').hex()\n", "d6d0"),
    ("csv", "import csv, io\n__return_value__ = list(csv.reader(io.StringIO('a,b\\n1,2')))\n", [["a", "b"], ["1", "2"]]),
)  # fmt: skip
