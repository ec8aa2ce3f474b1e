"""Everything that imports NoneBot, Amrita or its plugins. Other rooms must stay usable without them."""
