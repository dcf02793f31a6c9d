"""Linear chains: a label for each token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from partwise.torch import reference
from partwise.torch.chain_ops import ChainBatch, chain_loss
from partwise.torch.distribution import (
    StructuredDistribution,
    check_device,
    check_labels,
    check_lengths,
    check_scores,
    check_set,
    integers,
)
from partwise.torch.end_to_end import laid_end_to_end
from partwise.torch.operators import compiled_here


class LinearChain(StructuredDistribution):
    """The distribution over label sequences of a linear-chain conditional random field.

        s(y) = start[y_1] + sum_t emissions[t, y_t] + sum_{t > 1} transitions[y_{t-1}, y_t] + stop[y_T]

    Parameters
    ----------
    emissions : Tensor (B, T, L), or (tokens, L) with `cu_seqlens`
        Scores of labels; padding may hold anything.
    transitions : Tensor (L, L), (B, L, L) or (B, T - 1, L, L), optional
        Scores of a label (column) after another (row), the same everywhere or into each token but the first; -inf where it is
        forbidden. Zero by default.
    start, stop : Tensor (L,) or (B, L), optional
        Scores of the first and the last label.
    lengths : integers (B,), optional
        Tokens of each sequence; all T by default. Zero is fine.
    mask : bool Tensor (B, T), optional
        Instead of lengths; each row must be true up to some place and false behind it.
    cu_seqlens : integers (B + 1,), optional
        Where sequences begin that lie end to end, without padding. A nested tensor (torch.jagged) says it itself.
    validate : bool
        Whether NaN and +inf are looked for (on the CPU only: elsewhere it would wait for the device).

    Notes
    -----
    `marginals` is a tuple ``(emissions, transitions, start, stop)``: the probability of each label at each token, the expected
    number of each transition in each sequence, (B, L, L), or the probability of each at each step, (B, T - 1, L, L), and the
    probabilities of the first and the last label.
    Cost of everything but `topk`: O(T L^2) time and O(T L) memory for each sequence; no tensor of T L^2 entries is made.

    Examples
    --------
    >>> chain = LinearChain(torch.zeros(2, 3, 5), torch.zeros(5, 5), lengths=[3, 1])
    >>> [round(float(z), 4) for z in chain.log_partition]  # log 5^3, log 5
    [4.8283, 1.6094]
    >>> chain.argmax.shape, chain.marginals[0].shape
    (torch.Size([2, 3]), torch.Size([2, 3, 5]))
    """

    structure = "chain"

    def __init__(
        self,
        emissions: Tensor,
        transitions: Tensor | None = None,
        start: Tensor | None = None,
        stop: Tensor | None = None,
        *,
        lengths: Any = None,
        mask: Tensor | None = None,
        cu_seqlens: Any = None,
        validate: bool = True,
    ):
        emissions, packing = laid_end_to_end(emissions, cu_seqlens, lengths, mask)
        emissions = check_scores(emissions, "emissions", 3 if packing is None else 2, validate)
        check_labels(emissions, "emissions")
        L = emissions.shape[-1]
        if packing is not None:
            lengths, begins, width = packing.lengths, packing.begins, packing.width
            self.shape: tuple[int, int] | None = None
        else:
            B, width = emissions.shape[:2]
            if mask is not None:
                lengths = lengths_of(mask, B, width, lengths)
            lengths = check_lengths(lengths, B, width, "sequence")
            begins = torch.arange(B) * width
            self.shape = (B, width)
        n = lengths.shape[0]
        steps: tuple[Tensor, ...] = ()
        if isinstance(transitions, Tensor) and transitions.dim() == 4:
            steps = (check_scores(transitions, "transitions", 4, validate).to(emissions.dtype),)
            check_device(transitions, "transitions", emissions, "emissions")
            if self.shape is None or transitions.shape != (n, max(width - 1, 0), L, L):
                raise ValueError(
                    f"'transitions' for each step must have shape ({n}, {max(width - 1, 0)}, {L}, {L}), of padded sequences. "
                    f"Got {tuple(transitions.shape)}."
                )
            self.structure, transitions = "stepwise_chain", None
        table = transitions_table(transitions, start, n, L, emissions, validate)
        stop = torch.zeros(1, L, dtype=emissions.dtype, device=emissions.device) if stop is None else stop
        stop = stop[None] if isinstance(stop, Tensor) and stop.dim() == 1 else stop
        stop = check_scores(stop, "stop", 2, validate)
        check_device(stop, "stop", emissions, "emissions")
        if stop.shape not in ((1, L), (n, L)):
            raise ValueError(f"'stop' must have shape ({L},) or ({n}, {L}). Got {tuple(stop.shape)}.")
        tensors = (emissions.reshape(-1, L), begins.to(emissions.device), table, stop, *steps)
        super().__init__(tensors, lengths, [L, width, int(packing is None)], width)

    @classmethod
    def hmm(
        cls,
        observed: Tensor,
        initial: Tensor,
        transitions: Tensor,
        emissions: Tensor,
        *,
        lengths: Any = None,
        mask: Tensor | None = None,
        validate: bool = True,
    ) -> LinearChain:
        """A hidden Markov model, given what was observed: `log_partition` is then the log-likelihood of the observations.

        Parameters
        ----------
        observed : integers (B, T)
            Numbers of symbols; of padding, any of them.
        initial : Tensor (L,)
            Log probabilities of the first state.
        transitions : Tensor (L, L)
            Log probabilities of a state (column) after another (row).
        emissions : Tensor (L, V)
            Log probabilities of each symbol (column) in each state.

        Examples
        --------
        >>> half = torch.full((2, 2), 0.5).log()
        >>> [round(float(p), 4) for p in LinearChain.hmm(torch.tensor([[0, 1, 1]]), half[0], half, half).log_partition.exp()]
        [0.125]
        """
        observed, V = integers(observed, "observed"), check_scores(emissions, "emissions", 2, validate).shape[1]
        if observed.dim() != 2:
            raise ValueError(f"'observed' must have a symbol for each token, (B, T). Got shape {tuple(observed.shape)}.")
        check_scores(initial, "initial", 1, validate)
        if observed.device.type == "cpu" and not torch.compiler.is_compiling():
            wrong = ((observed < 0) | (observed >= V)).nonzero()
            if len(wrong):
                i, t = wrong[0].tolist()
                raise ValueError(f"sequence {i}, token {t}: symbols must be in [0, {V}). Got {int(observed[i, t])}.")
        found = torch.nn.functional.embedding(observed.to(emissions.device), emissions.mT)
        return cls(found, transitions, initial, lengths=lengths, mask=mask, validate=validate)

    @property
    def n_labels(self) -> int:
        """L."""
        return int(self.sizes[0])

    def _rows(self) -> Tensor:
        """(B, width) row of each token among the emissions; 0 for padding."""
        place = torch.arange(self.width, device=self.tensors[0].device)
        return torch.where(self._inside(), self.tensors[1][:, None] + place, 0)

    def score_of(self, outputs: Tensor) -> Tensor:
        nodes, _, table, stop, *steps = self.tensors
        L, n, inside = self.n_labels, self.lengths.shape[0], self._inside()
        outputs = self.check_outputs(outputs).to(nodes.device)
        if not self.width:
            return nodes.new_zeros(n)
        before = torch.cat([torch.full_like(outputs[:, :1], L), outputs[:, :-1]], 1)
        which = torch.arange(n, device=nodes.device)
        of = which if table.shape[0] > 1 else torch.zeros_like(which)
        gained = picked(nodes, self._rows() * L + outputs) + picked(table, (of[:, None] * (L + 1) + before) * L + outputs)
        if steps and self.width > 1:
            step = which[:, None] * (self.width - 1) + torch.arange(self.width - 1, device=nodes.device)
            places = (step * L + outputs[:, :-1]) * L
            gained = torch.cat([gained[:, :1], gained[:, 1:] + picked(steps[0], places + outputs[:, 1:])], 1)
        total = torch.where(inside, gained, 0.0).sum(1)
        last = outputs.gather(1, (self.lengths.to(nodes.device) - 1).clamp(min=0)[:, None])[:, 0]
        of = which if stop.shape[0] > 1 else torch.zeros_like(which)
        return total + torch.where(inside[:, 0], stop[of, last], 0.0)

    def log_loss(self, target: Tensor, weight: Tensor) -> Tensor:
        nodes, begins, table, stop, *steps = self.tensors
        if table.shape[0] == stop.shape[0] == 1 and not steps and compiled_here(self.tensors):
            batch = ChainBatch(nodes, table[0, :-1], table[0, -1], stop[0], begins, self.lengths)
            if batch.is_quick:
                target = self._padded(torch.as_tensor(target)).to("cpu", torch.int64)
                return chain_loss(batch, target, weight.to("cpu", torch.float32))
        return super().log_loss(target, weight.to(nodes))

    def check_outputs(self, outputs: Tensor) -> Tensor:
        """Labels as int64 (B, width), zero behind the end of a sequence; an error names the sequence and the token."""
        outputs = self._padded(integers(outputs, "outputs"))
        if outputs.dim() != 2:
            raise ValueError(f"Expected a label for each token. Got {tuple(outputs.shape[2:])} more for each.")
        outputs = torch.where(self._inside().to(outputs.device), outputs.long(), 0)
        if outputs.device.type == "cpu" and not torch.compiler.is_compiling():
            wrong = ((outputs < 0) | (outputs >= self.n_labels)).nonzero()
            if len(wrong):
                i, t = wrong[0].tolist()
                raise ValueError(f"sequence {i}, token {t}: labels must be in [0, {self.n_labels}). Got {int(outputs[i, t])}.")
        return outputs

    def _padded(self, values: Tensor) -> Tensor:
        """Something for each token, end to end or padded, as (B, width, ...)."""
        n, tokens = self.lengths.shape[0], self.tensors[0].shape[0]
        if values.shape[:2] == (n, self.width):
            return values
        if self.shape is None and values.shape[0] == tokens:
            if not tokens:
                return values.new_zeros(n, self.width, *values.shape[1:])
            return values[self._rows().to(values.device)]
        expected = f"({n}, {self.width}, ...)" if self.shape else f"({tokens}, ...) or ({n}, {self.width}, ...)"
        raise ValueError(f"Expected something for each token, shape {expected}. Got shape {tuple(values.shape)}.")

    def _flat(self, values: Tensor) -> Tensor:
        """Something for each token, (B, width, ...) or end to end, by rows of emissions."""
        if values.shape[0] == self.tensors[0].shape[0] and (self.shape is None or values.shape[:2] != self.shape):
            return values
        values = self._padded(values)
        if self.shape is not None:
            return values.reshape(-1, *values.shape[2:])
        return values[self._inside()]

    def cost_tensors(self, target: Any, cost: Any = None) -> list[Tensor | None]:
        """Hamming cost, or ``cost[true label, label]`` for each token; targets may be sets of labels, (B, T, L) bool."""
        nodes, L = self.tensors[0], self.n_labels
        matrix = 1 - torch.eye(L) if cost is None else torch.as_tensor(cost)
        if matrix.shape != (L, L):
            raise ValueError(f"'cost' must be a matrix ({L}, {L}) of costs [true, answered]. Got shape {tuple(matrix.shape)}.")
        if matrix.device.type == "cpu" and not torch.compiler.is_compiling() and not matrix.isfinite().all():
            raise ValueError("'cost' must be finite.")
        matrix = matrix.to(nodes)
        if is_set_of_labels(target, L):
            fine = self._flat(target.to(nodes.device))
            if fine.shape != nodes.shape:
                raise ValueError(f"Sets of labels must have the shape of the emissions. Got {tuple(target.shape)}.")
            far = torch.full((), torch.inf, dtype=nodes.dtype, device=nodes.device)
            costs = torch.where(fine[:, :, None], matrix, far).amin(1)
            costs = torch.where(fine.any(-1, keepdim=True), costs, 0.0)
        else:
            costs = matrix[self._flat(self.check_outputs(target).to(nodes.device))]
        return [costs, *[None] * (len(self.tensors) - 1)]

    def restricted(self, allowed: Tensor) -> LinearChain:
        """Only labels that are allowed: (B, T, L) bool."""
        nodes = self.tensors[0]
        fine = self._flat(check_set(allowed).to(nodes.device))
        return self._with([nodes.masked_fill(~fine, -torch.inf), *self.tensors[1:]])

    def _shaped(self, tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        nodes, table, stop, *steps = tensors
        if self.shape is not None:
            nodes = nodes.reshape(*self.shape, -1)
        return nodes, steps[0] if steps else table[:, :-1], table[:, -1], stop

    def _sum_by_example(self, product: Tensor) -> Tensor:
        if product.dim() == 2 and product.shape[0] == self.tensors[0].shape[0] and product is not None:
            if self.shape is not None and product.shape[0] == self.shape[0] * self.shape[1]:
                return product.reshape(self.shape[0], self.shape[1] * product.shape[1]).sum(1)
            rows = reference.example_of_row(self.tensors[1], product.shape[0])
            return product.new_zeros(self.lengths.shape[0]).index_add(0, rows, product.sum(1))
        return product.flatten(1).sum(1)


def picked(scores: Tensor, places: Tensor) -> Tensor:
    """Scores by their places in memory: whose gradient is a sum into few places, quicker than that of indices by dimension."""
    return scores.reshape(-1).index_select(0, places.reshape(-1)).reshape(places.shape)


def is_set_of_labels(target: Any, n_labels: int) -> bool:
    """Whether a target is a set of acceptable labels for each token rather than one label."""
    return isinstance(target, Tensor) and target.dtype == torch.bool and target.shape[-1:] == (n_labels,)


def lengths_of(mask: Tensor, n: int, width: int, lengths: Any = None) -> Tensor:
    """Lengths of rows that are true up to some place; an error names the row."""
    if lengths is not None:
        raise ValueError("Give 'lengths' or 'mask', not both.")
    if not isinstance(mask, Tensor) or mask.shape != (n, width):
        got = tuple(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(f"'mask' must be a tensor with the shape of the tokens, ({n}, {width}). Got {got}.")
    mask = mask.detach().bool().cpu()
    lengths = mask.sum(1)
    if torch.compiler.is_compiling():
        return lengths
    wrong = (mask != (torch.arange(width) < lengths[:, None])).any(1).nonzero()
    if len(wrong):
        raise ValueError(f"'mask', row {int(wrong[0])}: it must be true up to the end of the sequence and false behind it.")
    return lengths


def transitions_table(transitions: Any, start: Any, n: int, L: int, like: Tensor, validate: bool) -> Tensor:
    """Transitions and, as their last row, start scores: (B or 1, L + 1, L)."""
    if transitions is None:
        transitions = torch.zeros(L, L, dtype=like.dtype, device=like.device)
    if start is None:
        start = torch.zeros(L, dtype=like.dtype, device=like.device)
    transitions = transitions[None] if isinstance(transitions, Tensor) and transitions.dim() == 2 else transitions
    start = start[None] if isinstance(start, Tensor) and start.dim() == 1 else start
    transitions = check_scores(transitions, "transitions", 3, validate)
    start = check_scores(start, "start", 2, validate)
    check_device(transitions, "transitions", like, "emissions")
    check_device(start, "start", like, "emissions")
    if transitions.shape not in ((1, L, L), (n, L, L)):
        raise ValueError(f"'transitions' must have shape ({L}, {L}) or ({n}, {L}, {L}). Got {tuple(transitions.shape)}.")
    if start.shape not in ((1, L), (n, L)):
        raise ValueError(f"'start' must have shape ({L},) or ({n}, {L}). Got {tuple(start.shape)}.")
    of = max(transitions.shape[0], start.shape[0])
    return torch.cat([transitions.expand(of, L, L), start[:, None].expand(of, 1, L)], 1).to(like.dtype)
