"""Text to vectors: services, the embedded models, and the rule that picks one. Knows no store and no bot."""
