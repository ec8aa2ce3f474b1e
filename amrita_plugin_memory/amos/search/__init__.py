"""Full-text search over the memory and the assets of a root: words of every script, kept in step with the files.

    Search(files, tags=…)      search, search_all, search_assets, retrieve, retrieve_text, changed, reindex, close
    SearchOptions, RetrieveOptions, SearchHit, SearchAllHit; render(hits, mode) for the prompt

The index is one SQLite file below ``.amos/``: made from the files, refreshed by change, safe to delete.
"""

from .hits import RetrieveOptions, SearchAllHit, SearchHit, SearchOptions, render
from .service import Search

__all__ = ["RetrieveOptions", "Search", "SearchAllHit", "SearchHit", "SearchOptions", "render"]
