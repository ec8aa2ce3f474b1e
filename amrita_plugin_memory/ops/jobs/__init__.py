"""Whole jobs as a person asks for them: check at start-up, reindex, restore. Each leaves a whole store behind."""
