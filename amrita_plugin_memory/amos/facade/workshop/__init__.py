"""What a root makes and runs: assets, tools, analysis, devices. `Workshop` holds the services, the rest are verbs."""

from .assets import AssetVerbs
from .insight import InsightVerbs
from .services import Workshop, build
from .tools import ToolVerbs

__all__ = ["AssetVerbs", "InsightVerbs", "ToolVerbs", "Workshop", "build"]
