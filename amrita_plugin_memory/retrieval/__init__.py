"""Embed, search, rank: how a question finds what was stored. Knows partitions, not facts."""
