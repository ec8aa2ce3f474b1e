"""A target for L3 on the shared host."""

from pathlib import Path

TARGET = 31900
QUIET_MINUTES = 0.1
CONFIG = f"""
[subconscious]
enabled = true
target_user_id = "{TARGET}"
rethink_base_delay_minutes = {QUIET_MINUTES}
rethink_penalty_multiplier = 1.0
"""


def enable(folder: Path) -> None:
    """Switch L3 on for the target before the host starts."""
    path = folder / "config" / "amrita_plugin_memory" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CONFIG, "utf-8")
