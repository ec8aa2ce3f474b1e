"""``amrita-memory`` and ``python -m amrita_plugin_memory``: the door that needs no bot."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    raise NotImplementedError


if __name__ == "__main__":
    main()
