"""L3: the background cycle that tidies in the silence of its target."""
