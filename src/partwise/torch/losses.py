"""The losses of the library over scores that a network gives: the same names, the same formulas, for every structure.

    L(beta, gamma) = 1/beta log sum_y exp beta( s(y) + gamma l(y) )  -  s(t)                     (Martins et al. 2010)
    ramp           = 1/beta log sum_y exp beta( s(y) + a l(y) )      -  max_y [ s(y) - b l(y) ]    (Mancev 2015, Do et al. 2008)
    soft ramp      = L(beta, gamma) - L(beta, 0)

with s(y) the score of an output, t the target and l its cost. Where the target is a set of acceptable outputs (partial labels),
its log sum, or its best, takes the place of s(t). Formulas, references: `partwise.losses.records`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from partwise.losses.loss import Loss
from partwise.losses.records import LOSSES, Family, Ramp, SoftRamp, get_loss
from partwise.torch.distribution import StructuredDistribution, check_set

REDUCTIONS = ("mean", "sum", "none")


def structured_loss(
    scores: StructuredDistribution,
    target: Tensor,
    loss: str | Loss = "crf",
    *,
    cost: Any = None,
    allowed: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What a batch of outputs loses against its targets.

    Parameters
    ----------
    scores : LinearChain, DependencyTree, Alignment, ...
        The scores of a batch.
    target : Tensor
        One output for each example; or a bool tensor that says which labels (arcs) are acceptable: partial labels.
    loss : str or Loss
        "crf", "hinge", "softmax_margin", "perceptron", "ramp", "ramp_do", "ramp_2", "soft_ramp", a spelling such as
        "family(beta=1, gamma=3)", or a record, Family(beta, gamma), Ramp(a, b).
    cost : optional
        What a wrong part costs (see the distribution's `cost_tensors`): for chains a matrix [true, answered]. Hamming by default.
    allowed : bool Tensor, optional
        Parts that an output may have at all: constraints. A target that is not allowed gets a loss of +inf.
    weight : Tensor (B,), optional
        Of each example.
    reduction : {"mean", "sum", "none"}
        The mean is over examples, or over their weights.

    Examples
    --------
    >>> from partwise.torch import LinearChain
    >>> chain = LinearChain(torch.tensor([[[2.0, 0.0], [0.0, 0.0]]]))
    >>> float(structured_loss(chain, torch.tensor([[1, 1]]), "hinge"))  # 2 + 2 - 0: the rival (0, 0) costs 2 and leads by 2
    4.0
    """
    if not isinstance(scores, StructuredDistribution):
        raise TypeError(f"Expected the scores of a batch as LinearChain, DependencyTree or the like. Got {type(scores).__name__}.")
    record = LOSSES[loss] if isinstance(loss, str) and loss in LOSSES else get_loss(loss)  # a name: no text to read in a graph
    if reduction not in REDUCTIONS:
        raise ValueError(f"The 'reduction' must be one of {', '.join(map(repr, REDUCTIONS))}. Got {reduction!r} instead.")
    if allowed is not None:
        scores = scores.restricted(check_set(allowed))
    target = torch.as_tensor(target)
    if target.dtype != torch.bool:
        scores.check_possible(target)
    plain = isinstance(record, Family) and record.beta == 1 and not record.gamma and target.dtype != torch.bool
    if plain and reduction != "none" and (weight is None or not torch.as_tensor(weight).requires_grad):
        n = scores.lengths.shape[0]
        each = torch.ones(n) if weight is None else checked_weights(weight, n)
        total = scores.log_loss(target, each)
        return total if reduction == "sum" else total / (each.sum() if weight is not None else max(n, 1))
    values = loss_of(scores, target, record, cost)
    if weight is not None:
        weight = checked_weights(weight, len(values)).to(values)
        values = values * weight
    if reduction == "none":
        return values
    total = values.sum()
    if reduction == "sum":
        return total
    return total / (weight.sum() if weight is not None else max(len(values), 1))


def checked_weights(weight: Any, n: int) -> Tensor:
    """Weights of n examples as a tensor."""
    weight = torch.as_tensor(weight)
    if weight.shape != (n,):
        raise ValueError(f"Expected a weight for each of the {n} examples. Got shape {tuple(weight.shape)}.")
    return weight


def loss_of(scores: StructuredDistribution, target: Tensor, loss: Loss, cost: Any) -> Tensor:
    """The loss of each example, (B,)."""
    partial = isinstance(target, Tensor) and target.dtype == torch.bool
    if isinstance(loss, Family):
        costs = scores.cost_tensors(target, cost) if loss.gamma else []
        reference = soft_max(scores.restricted(target), loss.beta) if partial else scores.score_of(target)
        return soft_max(scores.augmented(costs, loss.gamma), loss.beta) - reference
    if isinstance(loss, Ramp):
        costs = scores.cost_tensors(target, cost)
        return soft_max(scores.augmented(costs, loss.a), loss.beta) - scores.augmented(costs, -loss.b).max
    if isinstance(loss, SoftRamp):
        costs = scores.cost_tensors(target, cost)
        return soft_max(scores.augmented(costs, loss.gamma), loss.beta) - soft_max(scores, loss.beta)
    raise ValueError(
        f"The loss {loss.name!r} is not one of those that take scores from a network. Use 'crf', 'hinge', 'softmax_margin', "
        "'perceptron', 'ramp', 'ramp_do', 'ramp_2', 'soft_ramp', or Family, Ramp, SoftRamp with parameters of your own."
    )


def soft_max(scores: StructuredDistribution, beta: float) -> Tensor:
    """1/beta log sum_y exp beta s(y), the maximum for beta = inf; (B,)."""
    if math.isinf(beta):
        return scores.max
    return scores.scaled(beta).log_partition / beta
