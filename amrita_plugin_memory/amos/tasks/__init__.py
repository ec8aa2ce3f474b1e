"""Background work of a root that outlives the process: files in ``tasks/{pending,running,completed,failed}/``.

    TaskManager(files, options, publish=bus.publish)
        register_handler, submit_task, cancel, get_task, list_pending, list_tasks, counts
        run_once, start, stop, recover

Two managers on one root, in one process or in many, run each task once.
"""

from .record import Task
from .service import TaskManager, TaskManagerOptions

__all__ = ["Task", "TaskManager", "TaskManagerOptions"]
