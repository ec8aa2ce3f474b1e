"""What an attack is."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

EFFECTS = frozenset(
    ("leak", "net", "write", "late", "orphan", "burn", "dead", "memory", "type", "error", "flood", "bleed", "won")
)


@dataclass(frozen=True, slots=True)
class Attack:
    """``parts`` run one after the other in the same sandbox; the last one's answer is judged. Seconds."""

    id: str
    parts: tuple[str, ...]
    seconds: float = 2.0
    network: bool = False
    quick: bool = False
    forbidden: frozenset[str] = field(default=EFFECTS)


def raw(id: str, *parts: str, **more: object) -> Attack:
    """An attack that is the code itself."""
    return Attack(id, tuple(textwrap.dedent(part).strip("\n") + "\n" for part in parts), **more)  # type: ignore[arg-type]


def tried(id: str, body: str, **more: object) -> Attack:
    """An attack that is the body of ``run`` and reports an ordinary refusal as such."""
    inner = textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8)
    return raw(
        id,
        f"def run(params):\n    try:\n{inner}\n    except Exception as e:\n        return 'denied ' + type(e).__name__\n",
        **more,
    )
