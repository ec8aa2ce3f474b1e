"""L2: facts found by meaning and by words: remember, recall, amend, forget, list."""

from .fact import IMPORTANCES, Fact, Importance
from .service import COLLECTION, Facts, Found, Listed, Page, Recalled, Survey

__all__ = ["COLLECTION", "IMPORTANCES", "Fact", "Facts", "Found", "Importance", "Listed", "Page", "Recalled", "Survey"]
