"""What all distributions over structures have: p(y) = exp(s(y)) / Z over the outputs y of every example of a batch.

A subclass says what its score tensors are, how an output is scored (`score_of`) and what a wrong output costs; the rest is here.
All methods are batched, and differentiable in the scores where that means something. On the CPU they run the library's compiled
oracles (`operators`).
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from partwise.torch.end_to_end import EndToEnd
from partwise.torch.operators import OPERATORS, sums

D = TypeVar("D", bound="StructuredDistribution")


class StructuredDistribution:
    """Base class; see the subclasses.

    Attributes
    ----------
    tensors : tuple of Tensor
        Scores as the operators take them.
    lengths : Tensor (B,) or (B, 2), int64
        Of each example, on the CPU.
    """

    structure: str
    argument_names: tuple[str, ...]
    packing: EndToEnd | None = None  #: of scores that were given end to end, and are padded inside

    def __init__(self, tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int], width: int):
        self.tensors, self.lengths, self.sizes, self.width = tuple(tensors), lengths, list(sizes), width
        self._sums: tuple[Tensor, ...] | None = None

    # ------------------------------------------------------------------------------------------------------------------
    # What subclasses say
    # ------------------------------------------------------------------------------------------------------------------

    def _with(self: D, tensors: Sequence[Tensor]) -> D:
        """The same batch with other scores; loops look for as many as there were."""
        for before, after in zip(self.tensors, tensors, strict=True):
            if after.shape != before.shape:
                raise ValueError(
                    f"What costs, or is allowed, must have the shape of the scores, {tuple(before.shape)}. It would make them "
                    f"{tuple(after.shape)}."
                )
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.tensors, other._sums = tuple(tensors), None
        return other

    def score_of(self, outputs: Tensor) -> Tensor:
        """s(y) of given outputs, (B,): differentiable in the scores."""
        raise NotImplementedError

    def cost_tensors(self, target: Any, cost: Any = None) -> list[Tensor | None]:
        """What each part costs against the target, in the shapes of `tensors`; None where nothing costs."""
        raise NotImplementedError

    def restricted(self: D, allowed: Any) -> D:
        """The same without the outputs that are not acceptable: their scores are -inf."""
        raise NotImplementedError

    def _shaped(self, tensors: Sequence[Tensor]) -> Any:
        """Part tensors in the shapes that the caller gave the scores in."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------------------------
    # Scores
    # ------------------------------------------------------------------------------------------------------------------

    @property
    def scores(self) -> list[Tensor]:
        """Those of `tensors` that are scores."""
        return [tensor for tensor in self.tensors if tensor.is_floating_point()]

    def augmented(self: D, costs: Sequence[Tensor | None], weight: float) -> D:
        """Scores plus `weight` times the cost of each part."""
        if weight == 0:
            return self
        return self._with([t if c is None else t + weight * c.to(t) for t, c in zip(self.tensors, costs, strict=True)])

    def scaled(self: D, beta: float) -> D:
        """Scores times the inverse temperature beta."""
        return self if beta == 1 else self._with([t * beta if t.is_floating_point() else t for t in self.tensors])

    # ------------------------------------------------------------------------------------------------------------------
    # Sums
    # ------------------------------------------------------------------------------------------------------------------

    def _all_sums(self) -> tuple[Tensor, ...]:
        if self._sums is None:
            self._sums = sums(self.structure, self.tensors, self.lengths, self.sizes)
        return self._sums

    @property
    def log_partition(self) -> Tensor:
        """log Z = log sum_y exp s(y), (B,)."""
        return self._all_sums()[0]

    @property
    def marginals(self) -> Any:
        """The probability of each part, in the shapes of the scores; what several examples share has an entry for each."""
        return self._shaped(self._all_sums()[1:])

    def log_loss(self, target: Tensor, weight: Tensor) -> Tensor:
        """sum_i weight[i] (log Z_i - s(target_i)), a scalar; structures may know a quicker way than this."""
        return -(weight * self.log_prob(target)).sum()

    def check_possible(self, outputs: Tensor) -> None:
        """Raise, on the CPU, if what was given is no output at all, though each of its parts is one: arcs that make a cycle."""

    def log_prob(self, outputs: Tensor) -> Tensor:
        """log p(y) = s(y) - log Z, (B,)."""
        self.check_possible(outputs)
        return self.score_of(outputs) - self.log_partition

    @property
    def entropy(self) -> Tensor:
        """H = log Z - E[s(y)], (B,), in nats."""
        return self.cross_entropy(self)

    def cross_entropy(self: D, other: D) -> Tensor:
        """-E_p[log q(y)] of another distribution q over the same outputs, (B,)."""
        self._check_like(other)
        log_z, *marginals = self._all_sums()
        expected = torch.zeros_like(log_z)
        for score, marginal in zip(other.scores, marginals, strict=True):
            product = torch.where(marginal > 0, marginal * torch.where(marginal > 0, score.to(marginal), 0.0), 0.0)
            expected = expected + self._sum_by_example(product)
        return other.log_partition - expected

    def kl(self: D, other: D) -> Tensor:
        """The Kullback-Leibler divergence E_p[log p(y) - log q(y)] >= 0, (B,)."""
        return self.cross_entropy(other) - self.entropy

    def _sum_by_example(self, product: Tensor) -> Tensor:
        """Sums over all but the examples."""
        return product.flatten(1).sum(1)

    def _check_like(self, other: StructuredDistribution) -> None:
        alike = type(other) is type(self) and other.structure == self.structure
        if not alike or not torch.equal(other.lengths, self.lengths) or other.sizes != self.sizes:
            raise ValueError(f"Expected another {type(self).__name__} over the same outputs. Got {other!r} instead.")

    # ------------------------------------------------------------------------------------------------------------------
    # Outputs
    # ------------------------------------------------------------------------------------------------------------------

    @property
    def _best(self) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            return OPERATORS[self.structure].best(*self._detached(), self.lengths, self.sizes, self.width)

    def _outputs(self, found: Tensor) -> Tensor:
        """Outputs of operators as callers see them."""
        return found

    @property
    def argmax(self) -> Tensor:
        """The best output of each example, (B, width) int64, zero behind its end, or where nothing is possible."""
        return self._outputs(self._best[1])

    @property
    def max(self) -> Tensor:
        """The score of the best output, (B,), -inf where nothing is possible; its gradient are the parts of that output."""
        values, found = self._best
        return torch.where(values > -torch.inf, self.score_of(self._outputs(found)), -torch.inf)

    def topk(self, k: int) -> tuple[Tensor, Tensor]:
        """The k best outputs, (B, k, width), and their scores, (B, k), best first; -inf where there are fewer."""
        if not isinstance(k, numbers.Integral) or k < 1:
            raise ValueError(f"The number of outputs k must be an integer, at least 1. Got {k!r} instead.")
        with torch.no_grad():
            values, outputs = OPERATORS[self.structure].kbest(*self._detached(), self.lengths, self.sizes, self.width, int(k))
        return outputs, values

    def sample(self, n: int = 1, generator: torch.Generator | None = None) -> Tensor:
        """Outputs drawn from p, (B, n, width) int64: exact, independent of each other; -1 where nothing is possible."""
        if not isinstance(n, numbers.Integral) or n < 0:
            raise ValueError(f"The number of samples n must be an integer, at least 0. Got {n!r} instead.")
        device = generator.device if generator is not None else "cpu"
        uniform = torch.rand(self.lengths.shape[0], n, self.width, dtype=torch.float64, generator=generator, device=device)
        with torch.no_grad():
            outputs = OPERATORS[self.structure].sample(*self._detached(), self.lengths, self.sizes, uniform.cpu())
        return torch.where(self._inside()[:, None, :], outputs, 0)

    def _detached(self) -> list[Tensor]:
        return [tensor.detach() for tensor in self.tensors]

    def _padded_rows(self, values: Any) -> Any:
        """Something for each row of scores that were given end to end as a padded batch; anything else as it is."""
        return self.packing.padded(values) if self.packing is not None and self.packing.is_packed(values) else values

    def _packed_rows(self, values: Tensor) -> Tensor:
        """Something for each place of a padded batch as the scores were given."""
        return values if self.packing is None else self.packing.packed(values)

    def _inside(self) -> Tensor:
        """(B, width) bool: places of outputs that are not padding."""
        lengths = self.lengths if self.lengths.dim() == 1 else self.lengths[:, 0]
        return (torch.arange(self.width) < lengths[:, None]).to(self.tensors[0].device)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch of {self.lengths.shape[0]}, {self.tensors[0].dtype}, {self.tensors[0].device})"


def check_lengths(lengths: Any, n: int, longest: int, what: str) -> Tensor:
    """Lengths as int64 on the CPU; all `longest` if None; an error names the example."""
    if lengths is None:
        return torch.full((n,), longest, dtype=torch.int64)
    lengths = integers(lengths, "lengths").detach().to("cpu", torch.int64)
    if lengths.shape != (n,):
        raise ValueError(f"Expected one length for each of the {n} {what}s. Got lengths of shape {tuple(lengths.shape)}.")
    if torch.compiler.is_compiling():
        return lengths
    wrong = ((lengths < 0) | (lengths > longest)).nonzero()
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(f"{what} {i}: its length must be between 0 and {longest}. Got {int(lengths[i])}.")
    return lengths


def integers(given: Any, name: str) -> Tensor:
    """Integers as a tensor."""
    given = torch.as_tensor(given)
    if given.is_floating_point() and given.numel() or given.is_complex():
        raise ValueError(f"{name!r} must be integers. Got {given.dtype} instead.")
    return given


def check_set(allowed: Any, name: str = "allowed") -> Tensor:
    """A bool tensor of what is allowed."""
    allowed = torch.as_tensor(allowed)
    if allowed.dtype != torch.bool:
        raise ValueError(f"{name!r} must be a bool tensor. Got {allowed.dtype} instead.")
    return allowed


def check_labels(scores: Tensor, name: str) -> None:
    """There must be labels to choose from."""
    if scores.shape[-1] == 0:
        raise ValueError(f"{name!r} must have at least one label in its last dimension. Got shape {tuple(scores.shape)}.")


def refuse_vmap(tensor: Tensor) -> None:
    """Compiled oracles take whole batches, and have no rule for tensors that pretend to be one example of many."""
    if torch._C._functorch.is_batchedtensor(tensor):
        raise ValueError("torch.vmap is not supported: the first dimension of all scores is that of a batch already.")


def check_device(tensor: Tensor, name: str, like: Tensor, other: str) -> None:
    """All scores of a batch are on one device."""
    if tensor.device != like.device:
        raise ValueError(f"{name!r} is on {tensor.device}, but {other!r} on {like.device}.")


def check_scores(tensor: Any, name: str, dims: int, validate: bool = True) -> Tensor:
    """A floating-point tensor of that many dimensions without NaN or +inf."""
    if not isinstance(tensor, Tensor) or not tensor.is_floating_point() or tensor.dim() != dims:
        got = f"{tensor.dtype}, shape {tuple(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor).__name__
        raise ValueError(f"{name!r} must be a floating-point tensor of {dims} dimensions. Got {got} instead.")
    if torch.compiler.is_compiling():
        return tensor
    refuse_vmap(tensor)
    if validate and tensor.device.type == "cpu":
        if tensor.detach().sum() < torch.inf:  # NaN if any is, or both infinities are there
            return tensor
        bad = (tensor.isnan() | (tensor == torch.inf)).nonzero()
        if len(bad):
            place = tuple(bad[0].tolist())
            raise ValueError(f"{name!r} has {tensor[place].item()} at {place}; scores are finite, or -inf for what is forbidden.")
    return tensor
