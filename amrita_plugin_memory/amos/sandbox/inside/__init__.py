"""What runs inside the confined processes: the launcher of Monty workers and the CPython child.

Started with ``python -I -S -B``, without site-packages and without the rest of this project; every file imports the
standard library and its neighbours only. All of it is Linux; elsewhere nothing here is started.
"""
