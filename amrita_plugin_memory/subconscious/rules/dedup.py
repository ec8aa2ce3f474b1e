"""Which facts may be the same thing said twice: groups for the model to judge, never for us to merge. Pure.

No cosine separates a duplicate from a contradiction ("喜欢羽毛球" and "讨厌羽毛球" lie close), so this only proposes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_LONE: Final = 0.9


def groups(matrix: NDArray[np.float32], *, quantile: float = 0.9, at_least: float = 0.6) -> list[list[int]]:
    """Groups of row numbers whose vectors lie closer to each other than most of their partition does.

    The bound is the ``quantile`` of all pairs' cosines, but no less than half-way from their median to their maximum
    and no less than ``at_least``, so that it fits models whose cosines are all high; a lone pair must be nearly equal.
    Groups are connected components, largest first; rows in none are left out.
    """
    n = len(matrix)
    if n < 2:
        return []
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit = matrix / np.where(norms > 0, norms, 1.0)
    cosines = unit @ unit.T
    pairs = cosines[np.triu_indices(n, 1)]
    middle, top = float(np.median(pairs)), float(pairs.max())
    bounds = [
        at_least,
        (middle + top) / 2,
        float(np.quantile(pairs, quantile)) if n > 4 else 0.0,
        _LONE if n == 2 else 0.0,
    ]
    bound = max(bounds)
    return components(n, [(int(i), int(j)) for i, j in zip(*np.nonzero(np.triu(cosines >= bound, 1)), strict=True)])


def components(count: int, edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Connected components of more than one member, largest first, members in order."""
    parent = list(range(count))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, j in edges:
        parent[max(root(i), root(j))] = min(root(i), root(j))
    found: dict[int, list[int]] = {}
    for i in range(count):
        found.setdefault(root(i), []).append(i)
    return sorted((one for one in found.values() if len(one) > 1), key=lambda one: (-len(one), one[0]))
