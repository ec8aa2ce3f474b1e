"""Finding and mending what crashes, foreign writers and full disks did to a root.

examine(files, fix=…) -> Diagnosis(found, mended, left)
"""

from .checks import Finding
from .service import Diagnosis, examine

__all__ = ["Diagnosis", "Finding", "examine"]
