"""A bot's folder seen from outside: its settings, where its data is, and its database. Starts no bot."""
