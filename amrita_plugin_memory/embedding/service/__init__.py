"""Embedding services over HTTP: addresses, clients, what an endpoint taught us, retries, and the embedder on top."""
