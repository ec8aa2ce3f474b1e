"""Words without a dictionary: what of a text can be matched, and how much of a question a text answers.

Pure. Characters of scripts that are written without blanks count alone and in pairs; words of other scripts count
whole, with English suffixes trimmed. On the development data this beats a segmenter, pairs alone and triples.

Score: ``coverage(q, d) = BM25(q, d) / sum over the terms of q of idf(t) * (k1 + 1)``, in [0, 1): the share of the BM25
that the question could attain at most, so that a weak match of one word never looks like a full one.
BM25 after Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), idf in the never-negative form.
"""

from __future__ import annotations

import re
from typing import Final

K1: Final = 1.2
B: Final = 0.75
_DENSE_SCRIPTS: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
_RUN: Final = re.compile(rf"[{_DENSE_SCRIPTS}]+|[^\W_{_DENSE_SCRIPTS}]+", re.UNICODE)
_DENSE: Final = re.compile(rf"[{_DENSE_SCRIPTS}]")
_STOP: Final = frozenset("的了是在有和与也都就吗呢吧啊呀么我你他她它们这那哪个一不会要")
_STOP_WORDS: Final = frozenset(
    ["a", "an", "the", "is", "are", "was", "were", "be", "been", "am", "do", "does", "did", "to", "of", "in", "on", "at", "for", "with", "and", "or", "what", "when", "where", "who", "which", "how", "why", "i", "you", "he", "she", "it", "we", "they", "my", "your", "his", "her", "its", "their", "me", "him", "them", "that", "this", "these", "those", "have", "has", "had"]
)
