"""Ways to the machine: files, other processes' memory, children, signals."""

from __future__ import annotations

from .model import raw, tried

SYSTEM = (
    tried("open_a_file", "return open(params['secret']).read()", quick=True),
    tried("open_through_pathlib", "import pathlib\nreturn pathlib.Path(params['secret']).read_text()", quick=True),
    tried("open_through_io", "import io\nreturn io.FileIO(params['secret']).read().decode()"),
    tried("open_through_os", "import os\nreturn os.read(os.open(params['secret'], os.O_RDONLY), 99).decode()"),
    tried("read_through_a_link", "import os\nos.symlink(params['secret'], params['canary'])\nreturn open(params['canary']).read()"),
    tried("read_through_linecache", "import linecache\nreturn ''.join(linecache.getlines(params['secret']))"),
    tried("read_through_a_parser", "import tomllib\nreturn str(tomllib.load(open(params['secret'], 'rb')))"),
    tried("own_environment_in_proc", "return open('/proc/self/environ').read()"),
    tried("hosts_environment_in_proc", "return open('/proc/%d/environ' % params['host']).read()", quick=True),
    tried("hosts_memory_in_proc", """
        host, found = params['host'], ''
        memory = open('/proc/%d/mem' % host, 'rb', 0)
        for line in open('/proc/%d/maps' % host):
            if ' rw-p ' not in line or '[v' in line: continue
            low, high = [int(x, 16) for x in line.split()[0].split('-')]
            if high - low > 1 << 26: continue
            memory.seek(low)
            page = memory.read(high - low)
            at = page.find(b'arena-memory-')
            if at >= 0: return page[at:at + 20].decode()
        return 'nothing'""", seconds=4.0),
    tried("hosts_descriptors_in_proc", "import os\nroot = '/proc/%d' % params['host']\nreturn str(os.listdir(root + '/fd')) + open(root + '/root' + params['secret']).read()"),
    tried("inherited_descriptors", """
        import os
        seen = ''
        for fd in range(3, 64):
            try:
                os.lseek(fd, 0, 0)
                seen += os.read(fd, 300).decode('latin1')
            except OSError:
                pass
        return seen"""),
    tried("write_a_file", "open(params['canary'], 'w').write('x')\nreturn 'written'", quick=True),
    tried("move_a_file", "import os\nos.rename(params['secret'], params['canary'])\nreturn 'moved'"),
    tried("fill_the_disk", """
        import tempfile
        f = tempfile.TemporaryFile()
        for _ in range(128): f.write(bytes(1 << 20))
        f.flush()
        return 'WON' if f.tell() > 100 << 20 else 'small'"""),
    tried("run_a_program", "import subprocess\nsubprocess.run(['touch', params['canary']])\nreturn 'ran'", quick=True),
    tried("run_a_shell", "import os\nos.system('touch ' + params['canary'])\nreturn 'ran'"),
    tried("replace_itself", "import os\nos.execv('/bin/sh', ['sh', '-c', 'touch ' + params['canary']])"),
    tried("call_the_c_library", "import ctypes\nc = ctypes.CDLL(None)\nc.getenv.restype = ctypes.c_char_p\nreturn str(c.getenv(b'ARENA_SECRET')) + str(c.system(('touch ' + params['canary']).encode()))"),
    tried("crash_through_c", "import ctypes\nctypes.string_at(0)"),
    tried("fork_many", """
        import os, time
        made = 0
        for _ in range(50):
            try:
                if os.fork() == 0:
                    os.setsid(); time.sleep(15); os._exit(0)
                made += 1
            except OSError:
                break
        return made""", quick=True),
    tried("fork_twice_and_write_later", """
        import os, time
        first = os.fork()
        if first == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(0.3)
                open(params['canary'], 'w').write('late')
                time.sleep(15)
            os._exit(0)
        os.waitpid(first, 0)
        return 'spawned'"""),
    tried("worker_process", "import multiprocessing, time\nmultiprocessing.get_context('fork').Process(target=time.sleep, args=(15,)).start()\nreturn 'started'"),
    tried("thread_that_stays", "import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin).start()\nreturn 'left'"),
    tried("signal_the_host", "import os\nos.kill(params['host'], 15)\nreturn 'sent'", quick=True),
    tried("signal_the_group", "import os\nos.kill(0, 12)\nos.killpg(os.getpgid(params['host']), 12)\nreturn 'sent'"),
    tried("ignore_every_signal", "import signal\nfor n in (1, 2, 14, 15, 24): signal.signal(n, signal.SIG_IGN)\nwhile True: pass"),
    raw("leave_at_once", "def run(params):\n    import os\n    os._exit(0)\n"),
    raw("raise_system_exit", "def run(params):\n    raise SystemExit(3)\n"),
    raw("raise_keyboard_interrupt", "def run(params):\n    raise KeyboardInterrupt('now')\n"),
    tried("trace_the_host", "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nreturn 'WON' if c.ptrace(16, params['host'], 0, 0) == 0 else str(ctypes.get_errno())"),
)  # fmt: skip
