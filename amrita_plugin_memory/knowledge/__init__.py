"""The shared knowledge base: entries with a title, a summary and a body."""
