"""Ways to use up time, memory, output or the parser."""

from __future__ import annotations

from .model import raw, tried

STARVING = (
    raw("loop_for_ever", "while True:\n    pass\n", seconds=1.0, quick=True),
    raw("loop_that_swallows", "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass\n", seconds=1.0),
    raw("one_long_call", "def run(params):\n    return sum(range(10 ** 13))\n", seconds=1.0),
    tried("sleep_long", "import time\ntime.sleep(30)\nreturn 'slept'", seconds=1.0, quick=True),
    tried("wait_for_input", "return input('? ')", seconds=1.0),
    raw("list_that_doubles", "x = [0] * 1000000\nwhile len(x) < 2 ** 29:\n    x = x + x\n__return_value__ = len(x)\n", seconds=4.0, quick=True),
    raw("three_gigabytes", "__return_value__ = len(b'a' * (3 << 30))\n", seconds=4.0),
    raw("wide_format", "__return_value__ = len('{:>2000000000}'.format(1))\n", seconds=4.0),
    raw("power_of_powers", "__return_value__ = len(str((9 ** 9 ** 8) % 7))\n"),
    raw("number_that_squares", "x = 10 ** 4000\nwhile True:\n    x = x * x\n"),
    raw("dict_that_grows", "d = {}\nn = 0\nwhile True:\n    d[n] = 'x' * 1000\n    n += 1\n", seconds=3.0),
    raw("call_without_end", "def f(n):\n    return f(n + 1)\ndef run(params):\n    return f(0)\n"),
    raw("call_without_end_and_limit", "def run(params):\n    import sys\n    sys.setrecursionlimit(10 ** 8)\n    def f(n): return [f(n + 1)]\n    return f(0)\n"),
    raw("nested_brackets", "__return_value__ = " + "(" * 6000 + "1" + ")" * 6000),
    raw("nested_signs", "__return_value__ = " + "-" * 60000 + "1"),
    raw("long_chain_of_calls", "x = 1\n__return_value__ = x.a" + "()" * 30000),
    raw("catastrophic_pattern", "import re\n__return_value__ = bool(re.match(r'(x+)+$', 'x' * 40 + 'y'))\n", seconds=1.0),
    raw("source_of_megabytes", "x = [\n" + "'0123456789abcdef',\n" * 300000 + "]\n__return_value__ = len(x)\n"),
    raw("print_without_end", "s = 'x' * 100000\nfor _ in range(100000):\n    print(s)\n", quick=True),
    tried("print_errors_without_end", "import sys\nfor _ in range(20000): sys.stderr.write('y' * 50000)\nreturn 'done'"),
    tried("open_many_descriptors", "import os\nreturn len([os.dup(0) for _ in range(50000)])"),
)  # fmt: skip
