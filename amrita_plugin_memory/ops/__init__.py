"""`amrita-memory …` and `ambot memory …`: what an owner does from a terminal, without the bot."""
