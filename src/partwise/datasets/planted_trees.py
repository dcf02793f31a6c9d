"""Wrong heads planted in dependency trees on purpose, to see whether models find them. What comes out are trees again.

Two kinds:

- ``"near"``: a word hangs from its grandparent, or from a word that it had for a sibling: what annotators disagree about
  (attachment of prepositions, which conjunct something belongs to);
- ``"uniform"``: from any other word.

A word never gets a head below itself, which would be a circle, and words that hang from the root stay there: so there are as many
roots as before. Relations stay what they are. See `partwise.datasets.planted` for errors of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from partwise.datasets.planted import Planted
from partwise.engine.ragged import totals

TREE_ERRORS = ("near", "uniform")


def plant_head_errors(trees: Sequence[Any], fraction: float, seed: int = 0, how: str = "near") -> Planted:
    """Give a fraction of the words a wrong head.

    Parameters
    ----------
    trees : list of `Tree`, of (heads, relations), or of heads
        Heads that are not known (None or -1) stay.
    fraction : float in [0, 1]
        Of the words whose head is known; rounded to a whole number of them. There are fewer where a tree does not have so many
        that could hang elsewhere.
    seed : int
    how : {"near", "uniform"}
        See the module.

    Returns
    -------
    Planted
        ``y`` (new trees of the same form), ``changed`` (trees) and ``tokens`` (words, end to end).

    Examples
    --------
    >>> noisy = plant_head_errors([[2, 0, 2, 5, 3], [0, 1]], 0.3, seed=2)
    >>> noisy.y, noisy.tokens.tolist()
    ([[2, 0, 1, 3, 3], [0, 1]], [False, False, True, True, False, False, False])
    """
    if not isinstance(fraction, Real) or isinstance(fraction, bool) or not 0 <= float(fraction) <= 1:
        raise ValueError(
            f"The 'fraction' parameter of plant_head_errors must be a float in the range [0, 1]. Got {fraction!r} instead."
        )
    if how not in TREE_ERRORS:
        choices = ", ".join(map(repr, TREE_ERRORS))
        raise ValueError(f"The 'how' parameter of plant_head_errors must be one of {choices}. Got {how!r} instead.")
    heads = [_heads_of(tree, i) for i, tree in enumerate(trees)]
    lengths = np.array([len(own) for own in heads], np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rng = np.random.default_rng(seed)
    known = np.flatnonzero(np.concatenate([np.zeros(0, np.int64), *heads]) >= 0)
    wanted, wrong = round(float(fraction) * len(known)), np.zeros(int(starts[-1]), np.bool_)
    for word in rng.permutation(known).tolist():
        if wanted == 0:
            break
        i = int(np.searchsorted(starts, word, side="right")) - 1
        choices = others_for(heads[i], word - int(starts[i]) + 1, how)
        if choices:
            heads[i][word - starts[i]] = choices[rng.integers(len(choices))]
            wrong[word] = True
            wanted -= 1
    changed = totals(wrong, starts) > 0
    return Planted([_like(tree, own) for tree, own in zip(trees, heads, strict=True)], changed, wrong)


def others_for(heads: np.ndarray, m: int, how: str) -> list[int]:
    """Wrong heads for word m, from 1, that leave a tree. O(words^2)."""
    head = int(heads[m - 1])
    if head <= 0:
        return []
    if how == "near":
        grandparent = int(heads[head - 1])
        found = [k for k in range(1, len(heads) + 1) if k == grandparent or (k != m and heads[k - 1] == head)]
    else:
        found = [k for k in range(1, len(heads) + 1) if k not in (m, head)]
    return [k for k in found if not _is_below(heads, k, m)]


def _is_below(heads: np.ndarray, word: int, m: int) -> bool:
    while word > 0 and word != m:
        word = int(heads[word - 1])
    return word == m


def _heads_of(tree: Any, i: int) -> np.ndarray:
    """A copy of the heads of a tree, -1 where they are not known."""
    own = tree[0] if _is_pair(tree) else tree
    heads = np.array([-1 if head is None else int(head) for head in own], np.int64)
    for m in range(1, len(heads) + 1):
        word = m
        for _ in range(len(heads) + 1):
            if word <= 0:
                break
            if heads[word - 1] > len(heads):
                raise ValueError(f"tree {i}: the head of word {word} is {heads[word - 1]}, but there are {len(heads)} words.")
            word = int(heads[word - 1])
        if word > 0:
            raise ValueError(f"tree {i}: the heads above word {m} go in a circle.")
    return heads


def _is_pair(tree: Any) -> bool:
    return isinstance(tree, tuple) and len(tree) == 2 and not isinstance(tree[0], int | np.integer)


def _like(tree: Any, heads: np.ndarray) -> Any:
    """A tree in the form of another, with these heads."""
    new = heads.tolist()
    if not _is_pair(tree):
        return new
    return tree._replace(heads=new) if hasattr(tree, "_replace") else (new, tree[1])
