"""Modules that Monty lacks and that tools like to use, in the Python that Monty speaks; they run inside the sandbox.

Each part is a text file beside this one, fed before the tool's code, and only when the code imports it. The only call
out of the sandbox is `HTTP_CALL` (method, url, headers, body) -> [status, headers, body, url].
"""

from __future__ import annotations

from importlib import resources
from typing import Final

HTTP_CALL: Final = "_amos_http"

MODULES: Final = {  # module: (part, expression it is bound to)
    "urllib.request": ("urllib", "_amos_urllib.request"),
    "urllib.parse": ("urllib", "_amos_urllib.parse"),
    "urllib.error": ("urllib", "_amos_urllib.error"),
    "requests": ("requests", "_amos_requests"),
    "html": ("html", "_amos_html"),
    "statistics": ("statistics", "_amos_statistics"),
    "string": ("string", "_amos_string"),
    "textwrap": ("textwrap", "_amos_textwrap"),
    "uuid": ("uuid", "_amos_uuid"),
}
_NEEDS: Final = {"urllib": ("parse", "fetch"), "requests": ("parse", "fetch")}


def load() -> dict[str, str]:
    """The text of every part, with the parts it needs before it. Reads files."""
    folder = resources.files(__package__ or "")
    texts = {part: folder.joinpath(f"{part}.txt").read_text("utf-8") for part in sorted(_all())}
    return {part: "".join(texts[one] for one in (*_NEEDS.get(part, ()), part)) for part, _ in MODULES.values()}


def _all() -> set[str]:
    return {part for part, _ in MODULES.values()} | {part for needs in _NEEDS.values() for part in needs}
