"""AmritaBot 的长期记忆。

Importing this package starts nothing. Only NoneBot's loader, which sets ``__plugin__`` before this body runs,
gets the plugin.
"""

if "__plugin__" in globals():
    from .host.plugin import __plugin_meta__ as __plugin_meta__
