"""The four Jinja2 templates: made from the defaults when missing, rendered in a sandbox with the variables of the seed.

Templates are the owner's files. What users said comes in as variables only and is never evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from jinja2 import DictLoader, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from amrita_plugin_memory.kernel.errors import ConfigInvalid
from amrita_plugin_memory.kernel.text import clean

DEFAULTS: Final = ("subconscious_main", "subconscious_send", "knowledge_guide", "profile_guide")
_SUFFIX: Final = ".md.jinja2"


def default_text(name: str) -> str:
    """The shipped text of a template, from the wheel or from a checkout."""
    package = files("amrita_plugin_memory")
    shipped = package / "defaults" / "prompt" / f"{name}{_SUFFIX}"
    if shipped.is_file():
        return shipped.read_text("utf-8")
    return Path(str(package)).parent.joinpath("config", "prompt", f"{name}{_SUFFIX}").read_text("utf-8")


class Prompts:
    """Templates below the plugin's configuration directory. Every function blocks: call them in a thread."""

    def __init__(self, config_dir: Path) -> None:
        self._dir = config_dir
        # No other file can be included; what is rendered is a prompt, not HTML.
        self._jinja = ImmutableSandboxedEnvironment(autoescape=False, loader=DictLoader({}))

    def ensure(self) -> list[Path]:
        """Write the templates that are missing; those that were written."""
        made: list[Path] = []
        for name in DEFAULTS:
            path = self._dir / "prompt" / f"{name}{_SUFFIX}"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(default_text(name), "utf-8")
                made.append(path)
        return made

    def render(self, file: str, variables: Mapping[str, object]) -> str:
        """One template with its variables; a missing file gives the default of that name.

        Raises:
            ConfigInvalid: the template cannot be rendered, or its path leaves the configuration directory.

        """
        path = (self._dir / file).resolve()
        if not path.is_relative_to(self._dir.resolve()):
            raise ConfigInvalid(f"提示词模板 {file} 不在插件的配置目录里")
        name = path.name.removesuffix(_SUFFIX)
        try:
            text = path.read_text("utf-8") if path.is_file() else default_text(name)
            return clean(self._jinja.from_string(text).render(variables)).strip()
        except (TemplateError, OSError, UnicodeDecodeError) as e:
            raise ConfigInvalid(f"提示词模板 {file} 无法使用：{e}，可以删掉它，机器人会重新生成") from e
