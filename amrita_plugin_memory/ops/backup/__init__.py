"""Backups: the published plugin's file, read and written piece by piece; a manifest beside it; and the way back."""
