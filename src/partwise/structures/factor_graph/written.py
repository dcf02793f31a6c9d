"""Factors that users write: any Python object that finds its own best configuration.

    class Pairs:
        def best(self, scores):            # the score of each literal, if it holds
            ...
            return value, on               # the highest score of a configuration, and which literals hold; -inf: none is left
        def expected(self, scores):        # for sums only
            ...
            return log_sum, probabilities  # log sum over configurations of exp(score), and the probability of each literal
        def value(self, on):               # only if it is quicker than asking `best`
            ...
            return own                     # the configuration's own score, -inf for what is forbidden

A configuration scores sum of `scores` of the literals that hold, and whatever of its own. Scores may be -inf: that literal cannot
hold. AD3 asks for nothing but `best`, its bound holds for any factor, and so do its proofs; belief propagation takes `expected`.
What a configuration has of its own follows from `best`, with scores that leave no other choice.

There is no compiling what is in such objects, so a graph with one of them is searched by the interpreter, everything in it. That
is some hundred times slower, and right for rules that no other factor says, for trying one out, and for small graphs. `best` may
call compiled code of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.engine.numerics import clipped, copy
from partwise.structures.factor_graph.ad3 import head_entry_score, head_score_of
from partwise.structures.factor_graph.factor_sums import tree_kind_messages, tree_or_head_messages
from partwise.structures.factor_graph.factors import (
    best_of_tree_kind,
    best_tree_or_head,
    head_table_value,
    head_value_of,
    tree_kind_allows,
    tree_or_head_allows,
)
from partwise.structures.factor_graph.layout import WRITTEN, WrittenLayout, is_on

FORCED = float(1 << 30)  # scores that leave no choice; a power of two, so that taking them off again loses little


def object_of(graph: Any, f: int) -> Any:
    """The user's object."""
    return graph.objects[int(graph.number[f])]


def negated(graph: Any, f: int) -> np.ndarray:
    """Which ports say "not this literal"."""
    return graph.mark[graph.ports[f] : graph.ports[f + 1]] == 1


def ask(factor: Any, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """The best configuration, checked."""
    answer = factor.best(scores.copy())
    try:
        value, on = answer
        value = float(value)
        if value == -np.inf:
            return value, np.zeros(len(scores), bool)
        on = np.asarray(on)
        fine = on.shape == scores.shape and not np.isnan(value) and bool(np.isin(on, (0, 1)).all())
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise ValueError(
            f"{type(factor).__name__}.best must return a score and, for each of {len(scores)} literals, whether it holds. "
            f"Got {answer!r}."
        )
    return value, on.astype(bool)


def own_value(factor: Any, on: np.ndarray) -> float:
    """What a configuration scores by itself, -inf if there is none such."""
    if hasattr(factor, "value"):
        return float(factor.value(on.copy()))
    value, found = ask(factor, np.where(on, FORCED, -FORCED))
    return value - FORCED * int(on.sum()) if np.array_equal(found, on) and value > -np.inf else -np.inf


@best_of_tree_kind.implements(WrittenLayout)
def best_written(graph, f, theta, scores, on):
    """The best configuration; literals that are negated score the other way round."""
    if graph.kind[f] != WRITTEN:
        return best_tree_or_head(graph, f, theta, scores, on)
    flip = negated(graph, f)
    value = np.where(flip, -np.maximum(scores, -FORCED), scores)
    total, found = ask(object_of(graph, f), value)
    copy(found ^ flip, on)
    return total - value[flip].sum()


@tree_kind_allows.implements(WrittenLayout)
def written_allows(graph, f, y, used):
    """Whether the object gives the output a score."""
    if graph.kind[f] != WRITTEN:
        return tree_or_head_allows(graph, f, y, used)
    return own_value(object_of(graph, f), holds(graph, f, y)) > -np.inf


def holds(graph: Any, f: int, y: np.ndarray) -> np.ndarray:
    """Which of the factor's statements hold in an output."""
    found = [is_on(graph, graph.literal[p], y) for p in range(graph.ports[f], graph.ports[f + 1])]
    return np.array(found, bool) ^ negated(graph, f)


@head_table_value.implements(WrittenLayout)
def written_value(graph, f, theta, y):
    """What the object itself gives to an output."""
    if graph.kind[f] != WRITTEN:
        return head_value_of(graph, f, theta, y)
    return own_value(object_of(graph, f), holds(graph, f, y))


@head_entry_score.implements(WrittenLayout)
def written_entry_score(graph, f, table, on):
    """The same for a configuration, given by its ports."""
    if graph.kind[f] != WRITTEN:
        return head_score_of(graph, f, table, on)
    return own_value(object_of(graph, f), on.astype(bool) ^ negated(graph, f))


@tree_kind_messages.implements(WrittenLayout)
def written_messages(graph, f, theta, scores, out, parts, far):
    """Log-odds that the object's probabilities say, without what came in."""
    if graph.kind[f] != WRITTEN:
        return tree_or_head_messages(graph, f, theta, scores, out, parts, far)
    factor, flip = object_of(graph, f), negated(graph, f)
    if not hasattr(factor, "expected"):
        raise TypeError(f"{type(factor).__name__} has no method expected(scores), which sums and probabilities need.")
    value = np.where(flip, -np.maximum(scores, -far), np.maximum(scores, -far))
    total, p = factor.expected(value.copy())
    p = np.asarray(p, float)
    if p.shape != value.shape or not ((p >= -1e-9) & (p <= 1.0 + 1e-9)).all():
        raise ValueError(f"{type(factor).__name__}.expected must return probabilities of its {len(value)} literals. Got {p!r}.")
    with np.errstate(divide="ignore"):
        odds = np.log(np.maximum(p, 0.0)) - np.log(np.maximum(1.0 - p, 0.0))
    for k in range(len(value)):
        said = clipped(clipped(float(odds[k]), far) - clipped(float(value[k]), far), far)
        out[k] = -said if flip[k] else said
    return float(total) - value[flip].sum()
