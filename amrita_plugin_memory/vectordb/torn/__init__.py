"""What is done when Chroma was killed while it saved its vector index.

Chroma writes the index over itself, without a journal: a kill (or a power cut) in those milliseconds leaves files that
do not fit each other. Then it opens nothing of the collection any more, also not the texts, which are safe in SQLite,
and a header that is half there even ends the process. So such an index is put aside before Chroma sees it. Chroma then
begins a new one from its log; rows whose vectors were in the old one only get zeros and the mark ``VECTORS_MISSING``,
and whoever embeds makes them whole again.
"""
