"""L1: the memo that is in every prompt, at most a thousand characters, replaced as a whole."""
