"""The scripted chat endpoint: a table of rules behind an OpenAI-compatible door. It is a script, not a model.

It emits tool calls and answers only with what its prompt and the tool results really say, so that an answer proves
that a memory arrived.
"""
