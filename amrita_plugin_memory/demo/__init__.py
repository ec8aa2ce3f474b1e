"""`amrita-memory demo`: a real bot, a scripted model and a simulated chat client in one terminal."""
