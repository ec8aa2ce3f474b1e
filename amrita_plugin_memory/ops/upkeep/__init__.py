"""Upkeep of what lasts for years: start-up check, rebuild, backups, key migration. Works without a bot."""
