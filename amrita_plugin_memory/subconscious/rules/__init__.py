"""The pure rules of L3: when a cycle is due, what it may spend, what it remembers, what looks alike."""
