"""AMOS-2.0: a file root for memory, a library of its own that needs no bot and none of our other rooms."""
