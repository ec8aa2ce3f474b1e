"""``.amos`` packages: a root, a user or an agent as one gzipped tar that other AMOS programs read.

    PortabilityManager(files, index)    export, import_bundle, recover
    ImportOptions, ImportReport, ExportResult, Limits

Whatever arrives is hostile until judged: no library extracts it, nothing of the root is touched before all of it was
read, and trust (access lists, runnable tools) is given by options one by one.
"""

from .limits import Limits
from .reports import ExportResult, ImportOptions, ImportReport
from .service import PortabilityManager

__all__ = ["ExportResult", "ImportOptions", "ImportReport", "Limits", "PortabilityManager"]
