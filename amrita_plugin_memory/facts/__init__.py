"""L2: facts found by meaning and by words: remember, recall, amend, forget, list."""
