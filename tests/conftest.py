"""Fixtures every test may use; anything with a server or a process lives in tests/support."""
