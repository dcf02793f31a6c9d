"""Wrong structures, alignments and relevance planted on purpose; labels of tokens, nodes and classes are planted by `planted`.

- `plant_structures`: RNA gets the structure of another of about its length, as when two records are mixed up;
- `plant_shifts`: a stretch of places stands opposite its neighbours, as when a gap is put in the wrong place;
- `plant_shuffles`: the relevance of all documents of a query is permuted, as when it was judged for another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.datasets.planted import Planted
from partwise.tasks.folding.files import read_dot_bracket, write_dot_bracket

STRETCH = (5, 15)  # places of an alignment that are shifted
FARTHEST = 3  # places that they are shifted by
NEAREST = 20  # RNA of about one length


def plant_structures(structures: Sequence[str], fraction: float, seed: int = 0) -> Planted:
    """Give a fraction of all RNA the structure of another one, of those of the nearest lengths one that differs most.

    It is cut at the end, or dots are added; brackets that lose their partner become dots.

    Parameters
    ----------
    structures : list of str
        Dot-brackets.
    fraction : float in [0, 1]
    seed : int

    Returns
    -------
    Planted
        ``y``; ``changed``, of all sequences; ``tokens``, of all bases: whether their partner is another.

    Examples
    --------
    >>> plant_structures(["((...))", ".......", "(....)"], 0.4, seed=1).y
    ['((...))', '((...))', '(....)']
    """
    partners = [read_dot_bracket(text)[0] for text in structures]
    lengths = np.array([len(one) for one in partners])
    new, rng = list(partners), np.random.default_rng(seed)
    for i in rng.choice(len(new), round(fraction * len(new)), replace=False).tolist():
        near = [j for j in np.argsort(np.abs(lengths - lengths[i]), kind="stable").tolist() if j != i][:NEAREST]
        others = [fitted(partners[j], int(lengths[i])) for j in near]
        if others:
            new[i] = max(others, key=lambda one: int((one != partners[i]).sum()))
    wrong = [a != b for a, b in zip(new, partners, strict=True)]
    made = [write_dot_bracket(a) if bad.any() else text for a, bad, text in zip(new, wrong, structures, strict=True)]
    return Planted(made, np.array([bad.any() for bad in wrong], bool), np.concatenate([np.zeros(0, bool), *wrong]))


def fitted(partners: np.ndarray, n: int) -> np.ndarray:
    """A structure of n bases: cut, or with unpaired bases at the end."""
    found = np.full(n, -1, np.int64)
    found[: len(partners)] = partners[:n]
    return np.where(found < n, found, -1)


def plant_shifts(partners: Sequence[Any], lengths: Any, fraction: float, seed: int = 0) -> Planted:
    """Shift a stretch of places of a fraction of all alignments: they stand opposite places next to the right ones.

    Parameters
    ----------
    partners : list of integer arrays
        For each place of a first sequence its partner in the second, -1 for a gap.
    lengths : integers (alignments,)
        Of the second sequences.
    fraction : float in [0, 1]
    seed : int

    Returns
    -------
    Planted
        ``y``; ``changed``, of all alignments; ``tokens``, of all places of first sequences.

    Examples
    --------
    >>> plant_shifts([[0, 1, 2, 3, 4, 5]], [8], 1.0).y[0].tolist()
    [2, 3, 4, 5, 6, 7]
    """
    old = [np.asarray(one, np.int32) for one in partners]
    sizes, rng, new = np.asarray(lengths), np.random.default_rng(seed), [one.copy() for one in old]
    for i in rng.choice(len(new), round(fraction * len(new)), replace=False).tolist():
        matched = np.flatnonzero(new[i] >= 0)
        if not len(matched):
            continue
        size = min(int(rng.integers(STRETCH[0], STRETCH[1] + 1)), len(matched))
        first = int(rng.integers(len(matched) - size + 1))
        by = int(rng.integers(1, FARTHEST + 1)) * int(rng.choice([-1, 1]))
        here = matched[first : first + size]
        low = int(new[i][matched[first - 1]]) if first else -1
        high = int(new[i][matched[first + size]]) if first + size < len(matched) else int(sizes[i])
        moved = new[i][here] + by
        new[i][here] = np.where((moved > low) & (moved < high), moved, -1)  # who has no room is left alone
    wrong = [a != b for a, b in zip(new, old, strict=True)]
    return Planted(new, np.array([bad.any() for bad in wrong], bool), np.concatenate([np.zeros(0, bool), *wrong]))


def plant_shuffles(y: Any, groups: Any, fraction: float, seed: int = 0) -> Planted:
    """Permute all labels of a fraction of the groups: relevance of the documents of queries.

    Parameters
    ----------
    y : array (documents,)
    groups : array (documents,)
        What each belongs to.
    fraction : float
        Of the groups.
    seed : int

    Returns
    -------
    Planted
        ``y``; ``changed``, of all groups in the order in which they are first met; ``tokens``, of all labels.

    Examples
    --------
    >>> sorted(plant_shuffles([3, 2, 1, 1, 0], ["a", "a", "a", "b", "b"], 1.0).y[:3].tolist())
    [1, 2, 3]
    """
    labels, names = np.asarray(y), np.asarray(groups)
    new, rng = labels.copy(), np.random.default_rng(seed)
    order = list(dict.fromkeys(names.tolist()))
    drawn = rng.choice(len(order), round(fraction * len(order)), replace=False)
    for k in drawn.tolist():
        own = np.flatnonzero(names == order[k])
        new[own] = new[rng.permutation(own)]
    wrong = new != labels
    return Planted(new, np.array([bool(wrong[names == name].any()) for name in order], bool), wrong)
