"""Settings: what `.env` and `config.toml` may say, with bounds and defaults.

Parses only: no singleton, no path lookup, no host. Whoever starts the program hands the values on.
"""

from .env import EnvSettings
from .file import FileSettings, SubconsciousSettings

__all__ = ["EnvSettings", "FileSettings", "SubconsciousSettings"]
