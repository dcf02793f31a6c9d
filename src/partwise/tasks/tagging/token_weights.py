"""Weights of single tokens, for any convex loss: a sequence becomes one example for each level of its weights.

With token weights omega_t >= 0, whose distinct positive values in a sequence are l_1 < l_2 < ... < l_k, its loss is

    L_omega(w) = sum_j (l_j - l_{j-1}) L_j(w),    l_0 = 0,    S_j = {t: omega_t >= l_j},

where L_j is the loss over the outputs that agree with the truth outside S_j: for the log-loss, -log p(y_S | x, y_rest). Every
L_j is the loss of a chain some of whose tokens are given, so it is convex, and so is their weighted sum; `docs/losses.md` has
what else one could think of, compared. It has the properties one asks for:

- equal weights: L_omega = omega L, the loss of the whole sequence;
- no transitions: L_omega = sum_t omega_t (-log p(y_t | x)), each token's log-loss times its weight;
- weight zero: nothing is learnt of the token, but its neighbours know its label;
- a sum of conditional likelihoods: weights that do not look at labels leave the best model where it is.

(A composite likelihood: Lindsay, Composite likelihood methods, 1988.) Cost: as many calls of the oracle for a sequence as it
has different weights, and its features are kept as often.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.ragged import taken
from partwise.losses.records import Loss
from partwise.tasks.common.label_arrays import class_weights
from partwise.tasks.tagging.data import Tokens


def read_token_weights(given: Any, tokens: Tokens) -> np.ndarray | None:
    """The weights of all tokens, end to end, in the form of X: one list for each sequence, or all of them with ``lengths=``."""
    if given is None:
        return None
    if isinstance(given, str | bytes) or not hasattr(given, "__len__"):
        raise TypeError(f"token_weight must hold a list of numbers for each sequence. Got {given!r}.")
    if tokens.joined:
        weights = [given]
    else:
        if len(given) != tokens.n_sequences:
            raise ValueError(f"X has {tokens.n_sequences} sequences, but token_weight has {len(given)}.")
        weights = list(given)
    lengths = [tokens.n_tokens] if tokens.joined else tokens.lengths.tolist()
    found = []
    for i, (one, n) in enumerate(zip(weights, lengths, strict=True)):
        what = "token_weight" if tokens.joined else f"token_weight of sequence {i}"
        try:
            array = np.asarray(one, np.float64)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{what} is not a list of numbers: {error}") from None
        if array.shape != (n,):
            raise ValueError(f"{what} must have one number per token, shape ({n},). Got shape {array.shape}.")
        found.append(array)
    flat = np.concatenate([np.zeros(0), *found])
    wrong = ~(np.isfinite(flat) & (flat >= 0))
    if wrong.any():
        t = int(np.argmax(wrong))
        raise ValueError(f"token_weight must be finite and non-negative. Got {flat[t]} for {tokens.place(t)}.")
    if not flat.any():
        raise ValueError("token_weight is zero for every token.")
    return flat


def token_weights(
    given: np.ndarray | None, class_weight: Any, loss: Loss, gold: np.ndarray, classes: np.ndarray, who: str
) -> np.ndarray | None:
    """What each token counts: what the user says, times the weight of its label where the loss does not see that by costs.

    A token whose label is unknown, or one of several, has no class and counts once. None: all count once.
    """
    if given is None and (class_weight is None or loss.uses_cost):
        return None
    if not loss.is_convex:
        what = "token_weight" if given is not None else "class_weight"
        raise ValueError(f"{what} needs a convex loss: 'crf', 'hinge', 'softmax_margin', 'perceptron'. {who} has {loss.name!r}.")
    weight = np.ones(len(gold)) if given is None else given
    if class_weight is not None and not loss.uses_cost:
        of_class = class_weights(class_weight, classes, gold[gold < len(classes)], None, who)
        weight = weight * np.append(of_class, 1.0)[np.minimum(gold, len(classes))]
        if not weight.any():
            raise ValueError(f"The 'class_weight' parameter of {who} leaves nothing: every token has the weight 0.")
    return weight


def by_levels(problem: Any, weight: np.ndarray, tokens: np.ndarray) -> tuple[Any, np.ndarray]:
    """A chain problem with one example for each level of its sequences' `tokens` weights, and the weights of these.

    Sequences whose tokens all have weight zero, and those without tokens, are left out. O(levels * tokens) time and memory.
    """
    starts = problem.starts
    which, free, weights = [], [], []
    for i, (a, b) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        levels = np.unique(tokens[a:b])
        levels = levels[levels > 0]
        for level, step in zip(levels, np.diff(levels, prepend=0.0), strict=True):
            which.append(i)
            free.append(tokens[a:b] >= level)
            weights.append(weight[i] * step)
    leveled = kernels.take(problem, np.array(which, np.int64))
    if all(one.all() for one in free):
        return leveled, np.array(weights)
    n_labels = problem.n_labels
    _, places = taken(starts, np.array(which, np.int64))
    known = problem.known.reshape(-1, n_labels)
    sets = np.concatenate([np.ones((1, n_labels), np.bool_), np.eye(n_labels, dtype=np.bool_), known])
    given = (1 + problem.gold[places]).astype(np.int32)  # sets[1 + gold] is what is known of a token
    return leveled._replace(allowed=np.where(np.concatenate(free), 0, given).astype(np.int32), sets=sets), np.array(weights)
