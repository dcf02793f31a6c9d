"""Assignments: each row gets a column of its own, as documents stand at the positions of a ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor

from partwise.torch.distribution import StructuredDistribution, check_scores, check_set, integers


class Assignment(StructuredDistribution):
    """Scores of assignments of rows to columns, no column to two of them.

        s(y) = sum_i match[i, y_i],        all y_i different

    Parameters
    ----------
    match : Tensor (B, n, m), n <= m
        Score of each column for each row: of the documents for the positions of a ranking, for instance.
    lengths : integers (B, 2), optional
        Rows and columns of each example; all (n, m) by default.
    validate : bool
        Whether NaN and +inf are looked for, on the CPU.

    Notes
    -----
    An output is (B, n) integers: the column of each row. There are `argmax`, `max` and `topk`, and the losses that need no more:
    hinge, perceptron, ramp. Sums over assignments are permanents, which nobody can compute: `log_partition`, `marginals`,
    `sample`, and losses with a temperature are refused.

    Cost: O(n^2 m) time for the best (shortest augmenting paths over the n best columns of each row), O(k n) times that for the k
    best (Murty's partition).

    Examples
    --------
    >>> Assignment(torch.tensor([[[3.0, 2.0], [2.0, 0.0]]])).argmax.tolist()
    [[1, 0]]
    """

    structure = "assignment"

    def __init__(self, match: Tensor, *, lengths: Any = None, validate: bool = True):
        match = check_scores(match, "match", 3, validate)
        B, n, m = match.shape
        if lengths is None:
            lengths = torch.tensor([[n, m]] * B, dtype=torch.int64).reshape(B, 2)
        lengths = integers(lengths, "lengths").detach().to("cpu", torch.int64)
        if lengths.shape != (B, 2):
            raise ValueError(
                f"Expected rows and columns of each of the {B} examples. Got lengths of shape {tuple(lengths.shape)}."
            )
        wrong = ((lengths < 0) | (lengths > torch.tensor([n, m])) | (lengths[:, :1] > lengths[:, 1:])).any(1)
        if not torch.compiler.is_compiling() and wrong.any():
            i = int(wrong.nonzero()[0])
            raise ValueError(
                f"example {i}: it must have at most {n} rows, at most {m} columns, and a column for each row. "
                f"Got {tuple(lengths[i].tolist())}."
            )
        super().__init__((match,), lengths, [], n)

    def _refuse(self) -> NoReturn:
        raise ValueError(
            "Sums over assignments are permanents, which cannot be computed: an Assignment has argmax, max and topk, and the "
            "losses 'hinge', 'perceptron' and 'ramp'."
        )

    def _all_sums(self) -> tuple[Tensor, ...]:
        self._refuse()

    def sample(self, n: int = 1, generator: torch.Generator | None = None) -> Tensor:
        """Refused: it would need sums."""
        self._refuse()

    def check_outputs(self, outputs: Tensor) -> Tensor:
        """Columns as int64 (B, n), zero behind the end; an error names the example and the row."""
        (match,) = self.tensors
        outputs = integers(outputs, "outputs")
        if outputs.shape != match.shape[:2]:
            raise ValueError(f"Expected a column for each row, shape {tuple(match.shape[:2])}. Got {tuple(outputs.shape)}.")
        inside = self._inside().to(outputs.device)
        outputs = torch.where(inside, outputs.long(), 0)
        if outputs.device.type == "cpu" and not torch.compiler.is_compiling():
            twice = (outputs[:, :, None] == outputs[:, None]) & inside[:, :, None] & inside[:, None]
            wrong = (((outputs < 0) | (outputs >= self.lengths[:, 1:])) & inside | twice.tril(-1).any(2)).nonzero()
            if len(wrong):
                i, k = wrong[0].tolist()
                raise ValueError(
                    f"example {i}, row {k}: its column must be below {int(self.lengths[i, 1])} and of no other row. "
                    f"Got {int(outputs[i, k])}."
                )
        return outputs

    def score_of(self, outputs: Tensor) -> Tensor:
        (match,) = self.tensors
        outputs = self.check_outputs(outputs).to(match.device)
        if not self.width or not match.shape[2]:
            return match.flatten(1).sum(1)
        return torch.where(self._inside(), match.gather(2, outputs[..., None])[..., 0], 0.0).sum(1)

    def cost_tensors(self, target: Any, cost: Any = None) -> list[Tensor | None]:
        """1 for each row with a wrong column, or ``cost``: (n,) of each row, or (n, m), (B, n, m) of each column for each row."""
        (match,) = self.tensors
        if isinstance(target, Tensor) and target.dtype == torch.bool:
            if target.shape != match.shape:
                raise ValueError(f"Sets of columns must have the shape of the scores. Got {tuple(target.shape)}.")
            return [(~target).to(match)]
        target = self.check_outputs(target).to(match.device)
        weight = torch.as_tensor(1.0 if cost is None else cost).to(match)
        weight = weight[:, None] if weight.dim() == 1 else weight
        wrong = torch.arange(match.shape[2], device=match.device) != target[..., None]
        return [torch.where(wrong, weight.expand(match.shape), 0.0)]

    def restricted(self, allowed: Tensor) -> Assignment:
        """Only pairs that are allowed: (B, n, m) bool."""
        (match,) = self.tensors
        return self._with([match.masked_fill(~check_set(allowed).to(match.device), -torch.inf)])

    def _shaped(self, tensors: Sequence[Tensor]) -> Tensor:
        return tensors[0]
