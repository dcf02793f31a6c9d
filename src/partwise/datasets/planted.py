"""Wrong labels planted on purpose, to see how models stand them and whether they find them.

Three kinds that the literature has, which are easy to plant:

- ``"sentence"``: a fraction of the sentences, drawn at random, get labels drawn uniformly at random, all of their tokens
  (Mancev 2015, section 5: outlier sentences);
- ``"token"``: a fraction of the tokens, drawn at random, get another label, drawn uniformly from the others: slips of annotators;
- ``"shuffle"``: of each class the same fraction is drawn, and the labels of what was drawn are permuted (Do et al. 2008, section
  5.1): the classes stay as frequent as they were.

And three that look like what annotators do:

- ``"boundary"``: of a fraction of the spans (chunks, entities) the beginning, the end or both move by one token, in or out; a
  neighbouring span gives way, but does not vanish;
- ``"type"``: a fraction of the spans get another type;
- ``"confusion"``: the examples are dealt out to five annotators, each of whom takes two labels for another one now and then,
  always the same one: pairs of labels drawn for each of them, in proportion to how frequent the true one is. A fraction of all
  labels gets wrong, if there are so many that one of them confuses.

References
----------
D. Mancev (2015). A sequential dual method for the structured ramp loss minimization. Facta Universitatis 30(1).
C. B. Do, Q. Le, C. H. Teo, O. Chapelle, A. Smola (2008). Tighter bounds for structured estimation. NIPS.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import chain
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from partwise.datasets.planted_spans import change_types, move_boundaries
from partwise.engine.ragged import totals

ANNOTATORS, PAIRS = 5, 2  # who confuses labels, and how many each


class Planted(NamedTuple):
    """Labels with planted errors, and where they are.

    Examples
    --------
    >>> planted = plant_errors(["a", "b", "a", "b"] * 5, 0.2, seed=0)
    >>> len(planted.y), int(planted.changed.sum())
    (20, 3)
    """

    y: Any  #: the new labels, in the form of the old ones
    changed: np.ndarray  #: (examples,) bool: those with at least one label that is not the old one
    tokens: np.ndarray  #: (tokens of all examples,) bool: labels that are not the old ones; for classes the same as `changed`


def plant_errors(
    y: Any,
    fraction: float,
    seed: int = 0,
    how: str = "sentence",
    *,
    lengths: Any = None,
    labels: Iterable[Hashable] | None = None,
) -> Planted:
    """Replace a fraction of the labels by wrong ones.

    Parameters
    ----------
    y : list of label sequences, or array or list of labels
        Labels one by one are classes, one per example, unless `lengths` says how many of them make up a sequence. None stands for
        an unknown label and stays, and so does a set of labels.
    fraction : float in [0, 1]
        Of the sentences, of the tokens, of each class, or of the spans: rounded to a whole number of them.
    seed : int
    how : {"sentence", "token", "shuffle", "boundary", "type", "confusion"}
        See the module. A class is a sentence of one token; in sequences, ``"shuffle"`` treats each token as an example.
        ``"boundary"`` and ``"type"`` need chunk tags, B-NP and so on, in any scheme, and change a fraction of the spans.
    lengths : integers (sequences,), optional
    labels : iterable, optional
        What random labels are drawn from; those that occur in y by default.

    Returns
    -------
    Planted
        ``y`` (a new object of the same form), ``changed`` and ``tokens``.

    Examples
    --------
    >>> noisy = plant_errors([["a", "b"], ["c"], ["a", "c", "b"]], 0.3, seed=2)
    >>> noisy.y, noisy.changed.tolist()
    ([['a', 'b'], ['c'], ['a', 'a', 'a']], [False, False, True])
    """
    if not isinstance(fraction, Real) or isinstance(fraction, bool) or not 0 <= float(fraction) <= 1:
        raise ValueError(
            f"The 'fraction' parameter of plant_errors must be a float in the range [0, 1]. Got {fraction!r} instead."
        )
    if how not in KINDS:
        choices = ", ".join(map(repr, KINDS))
        raise ValueError(f"The 'how' parameter of plant_errors must be one of {choices}. Got {how!r} instead.")
    flat, sizes, rebuild = _take_apart(y, lengths)
    names, codes, certain = _number(flat, labels)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    new = codes.copy()
    rng = np.random.default_rng(seed)
    if len(names) > 1:
        KINDS[how](new, starts, certain, float(fraction), names, rng)
    changed = new != codes
    wrong = flat.astype(object)
    wrong[changed] = names[new[changed]]
    return Planted(rebuild(wrong), totals(changed, starts) > 0, changed)


def _sentences(codes: np.ndarray, starts: np.ndarray, certain: np.ndarray, fraction: float, names: np.ndarray, rng: Any) -> None:
    """Random labels for all tokens of random sentences, of those that have a label at all."""
    full = np.flatnonzero(totals(certain, starts))
    drawn = np.zeros(len(starts) - 1, np.bool_)
    drawn[rng.choice(full, round(fraction * len(full)), replace=False)] = True
    tokens = np.repeat(drawn, np.diff(starts)) & certain
    codes[tokens] = rng.integers(0, len(names), np.count_nonzero(tokens))


def _tokens(codes: np.ndarray, starts: np.ndarray, certain: np.ndarray, fraction: float, names: np.ndarray, rng: Any) -> None:
    """Another label for random tokens."""
    where = np.flatnonzero(certain)
    drawn = rng.choice(where, round(fraction * len(where)), replace=False)
    codes[drawn] = (codes[drawn] + rng.integers(1, len(names), len(drawn))) % len(names)


def _shuffled(codes: np.ndarray, starts: np.ndarray, certain: np.ndarray, fraction: float, names: np.ndarray, rng: Any) -> None:
    """The labels of a fraction of each class, permuted."""
    drawn = [np.zeros(0, np.int64)]
    for label in range(len(names)):
        where = np.flatnonzero(certain & (codes == label))
        drawn.append(rng.choice(where, round(fraction * len(where)), replace=False))
    together = np.concatenate(drawn)
    codes[together] = codes[rng.permutation(together)]


def _confused(codes: np.ndarray, starts: np.ndarray, certain: np.ndarray, fraction: float, names: np.ndarray, rng: Any) -> None:
    """Labels that one of some annotators takes for another one."""
    n, K = len(starts) - 1, len(names)
    annotator = np.repeat(rng.permutation(n) % ANNOTATORS, np.diff(starts))
    share = np.bincount(codes[certain], minlength=K) / max(int(certain.sum()), 1)
    wrong = codes.copy()
    for who in range(ANNOTATORS):
        pairs = min(PAIRS, int(np.count_nonzero(share)))
        for label in rng.choice(K, pairs, replace=False, p=share).tolist() if pairs else ():
            wrong[(annotator == who) & (codes == label)] = (label + rng.integers(1, K)) % K
    where = np.flatnonzero(certain & (wrong != codes))
    drawn = rng.choice(where, min(round(fraction * np.count_nonzero(certain)), len(where)), replace=False)
    codes[drawn] = wrong[drawn]


KINDS: dict[str, Callable[..., None]] = {
    "sentence": _sentences,
    "token": _tokens,
    "shuffle": _shuffled,
    "boundary": move_boundaries,
    "type": change_types,
    "confusion": _confused,
}


def _take_apart(y: Any, lengths: Any) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], Any]]:
    """All labels end to end, the sizes of the examples, and how to put new labels into the form of y."""
    if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
        raise TypeError(f"y must be a list of label sequences, or an array or list of labels. Got a {type(y).__name__}.")
    if lengths is not None:
        flat, sizes = _as_array(y), np.asarray(lengths)
        if sizes.ndim != 1 or (sizes.size and sizes.dtype.kind not in "iu") or (sizes < 0).any() or sizes.sum() != len(flat):
            raise ValueError(f"lengths must be non-negative integers that sum to the {len(flat)} labels of y. Got {lengths!r}.")
        return flat, sizes.astype(np.int64), _like(y)
    nested = [_is_sequence(labels) for labels in y]
    if not any(nested):
        return _as_array(y), np.ones(len(nested), np.int64), _like(y)
    if not all(nested):
        i = nested.index(False)
        raise TypeError(f"y must hold sequences of labels or labels, not both. Example {i} is {y[i]!r}.")
    sequences = list(y)
    sizes = np.fromiter(map(len, sequences), np.int64, len(sequences))
    edges = np.concatenate([[0], np.cumsum(sizes)]).tolist()

    def rebuild(flat: np.ndarray) -> list[Any]:
        return [_like(one)(flat[a:b]) for one, a, b in zip(sequences, edges[:-1], edges[1:], strict=True)]

    return _as_array(list(chain.from_iterable(sequences))), sizes, rebuild


def _is_sequence(labels: Any) -> bool:
    return isinstance(labels, list | tuple) or (isinstance(labels, np.ndarray) and labels.ndim == 1)


def _as_array(y: Any) -> np.ndarray:
    if isinstance(y, np.ndarray):
        if y.ndim != 1:
            raise ValueError(f"y must have one dimension. Got shape {y.shape}.")
        return y
    flat = np.empty(len(y), object)  # labels stay what they are: tuples too, and 1 is not "1"
    for i, label in enumerate(y):
        flat[i] = label
    return flat


def _like(one: Any) -> Callable[[np.ndarray], Any]:
    """What makes an object like `one` of an array of labels."""
    if isinstance(one, np.ndarray) and one.dtype.kind not in "OUS":
        return lambda flat: flat.astype(one.dtype)
    if isinstance(one, np.ndarray):  # strings take the room they need
        return lambda flat: flat.copy() if one.dtype == object or not len(flat) else np.array(flat.tolist())
    return tuple if isinstance(one, tuple) else lambda flat: flat.tolist()


def _number(flat: np.ndarray, labels: Iterable[Hashable] | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The labels there are, what each token has (0 where unknown or a set), and which tokens have exactly one label."""
    given = flat.tolist()
    certain = np.array([label is not None and not isinstance(label, set | frozenset) for label in given], np.bool_)
    seen = dict.fromkeys(label for label, one in zip(given, certain.tolist(), strict=True) if one)
    if labels is not None:
        drawn_from = dict.fromkeys(labels)
        missing = next((label for label in seen if label not in drawn_from), None)
        if missing is not None:
            raise ValueError(f"y holds the label {missing!r}, which is not one of `labels`.")
        seen = drawn_from
    try:
        names = sorted(seen)  # type: ignore[type-var]
    except TypeError:
        names = list(seen)
    number = {label: k for k, label in enumerate(names)}
    codes = np.array([number[label] if one else 0 for label, one in zip(given, certain.tolist(), strict=True)], np.int64)
    table = np.empty(len(names), object)
    for k, label in enumerate(names):
        table[k] = label
    return table, codes, certain
