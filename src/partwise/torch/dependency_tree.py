"""Dependency trees: a head, and a label of the arc from it, for each word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from partwise.torch.distribution import StructuredDistribution, check_lengths, check_scores
from partwise.torch.end_to_end import laid_end_to_end


class DependencyTree(StructuredDistribution):
    """The distribution over trees whose arcs have scores.

        s(y) = sum_m arcs[m, head(m), label(m)],        the arcs head(m) -> m being a tree below the root

    Parameters
    ----------
    arcs : Tensor (B, n, n + 1) or (B, n, n + 1, L), or (words, n + 1) or (words, n + 1, L) with `cu_seqlens`
        Score of the arc to word m (0 .. n - 1) from head h: 0 is the root, h the h-th word. What a word has for itself is never
        looked at, and padding may hold anything.
    lengths : integers (B,), optional
        Words of each sentence; all n by default.
    cu_seqlens : integers (B + 1,), optional
        Where sentences begin whose words lie end to end (padded inside); n is then the number of words of the longest one. A
        nested tensor (torch.jagged) says it itself.
    projective : bool
        Whether arcs may not cross (Eisner's algorithm), or any tree will do (spanning trees, the matrix-tree theorem).
    single_root : bool
        Whether exactly one word hangs from the root.
    validate : bool
        Whether NaN and +inf are looked for, on the CPU.

    Notes
    -----
    An output is (B, n) integers: the head of each word, and ``head * L + label`` where there are labels (`heads_of` takes them
    apart). `marginals` has the shape of `arcs`. Cost: O(n^2 L), and O(n^2) time for the best tree, O(n^3) for the best projective
    one and for sums.

    Examples
    --------
    >>> tree = DependencyTree(torch.zeros(1, 3, 4))
    >>> round(float(tree.log_partition.exp()))  # single-rooted trees of three words
    9
    >>> round(float(DependencyTree(torch.zeros(1, 3, 4), projective=True).log_partition.exp()))
    7
    """

    structure = "tree"

    def __init__(
        self,
        arcs: Tensor,
        *,
        lengths: Any = None,
        cu_seqlens: Any = None,
        projective: bool = False,
        single_root: bool = True,
        validate: bool = True,
    ):
        arcs, self.packing = laid_end_to_end(arcs, cu_seqlens, lengths, what="words")
        if self.packing is not None:
            arcs = check_scores(arcs, "arcs", 3 if isinstance(arcs, Tensor) and arcs.dim() == 3 else 2, validate)
            arcs, lengths = self.packing.padded(arcs), self.packing.lengths
        self.labelled = isinstance(arcs, Tensor) and arcs.dim() == 4
        arcs = check_scores(arcs, "arcs", 4 if self.labelled else 3, validate)
        B, n = arcs.shape[:2]
        if arcs.shape[2] != n + 1:
            raise ValueError(f"'arcs' must have one more head than words, the root: (B, {n}, {n + 1}). Got {tuple(arcs.shape)}.")
        lengths = check_lengths(lengths, B, n, "sentence")
        arcs = arcs if self.labelled else arcs[..., None]
        super().__init__((arcs,), lengths, [arcs.shape[-1], int(projective), int(single_root)], n)

    @property
    def n_labels(self) -> int:
        """L; 1 where arcs have no labels."""
        return int(self.sizes[0])

    def heads_of(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Heads and labels of outputs."""
        return outputs // self.n_labels, outputs % self.n_labels

    def check_outputs(self, outputs: Tensor) -> Tensor:
        """Outputs as int64 (B, n), zero behind the end of a sentence; an error names the sentence and the word."""
        outputs, (B, n) = self._padded_rows(torch.as_tensor(outputs)), self.tensors[0].shape[:2]
        if outputs.shape != (B, n):
            raise ValueError(f"Expected a head for each word, shape ({B}, {n}). Got shape {tuple(outputs.shape)}.")
        outputs = torch.where(self._inside().to(outputs.device), outputs.long(), 0)
        if outputs.device.type == "cpu" and not torch.compiler.is_compiling():
            heads = outputs // self.n_labels
            wrong = ((outputs < 0) | (heads > self.lengths[:, None]) | (heads == torch.arange(1, n + 1))).nonzero()
            if len(wrong):
                i, m = wrong[0].tolist()
                raise ValueError(
                    f"sentence {i}, word {m + 1}: its head must be another word, 1 to {int(self.lengths[i])}, or 0 for the root"
                    f"{', times the number of labels, plus a label' if self.labelled else ''}. Got {int(outputs[i, m])}."
                )
        return outputs

    def score_of(self, outputs: Tensor) -> Tensor:
        (arcs,) = self.tensors
        outputs = self.check_outputs(outputs).to(arcs.device)
        gained = arcs.flatten(2).gather(2, outputs[..., None])[..., 0]
        return torch.where(self._inside(), gained, 0.0).sum(1)

    def cost_tensors(self, target: Any, cost: Any = None) -> list[Tensor | None]:
        """1 for a wrong head; for a wrong label of the right head `cost`, 1 by default. Sets of arcs, bool: 1 outside the set."""
        (arcs,) = self.tensors
        if isinstance(target, Tensor) and target.dtype == torch.bool:
            fine = self._full(target)
            return [(~fine).to(arcs) * fine.flatten(2).any(-1)[..., None, None]]
        heads, labels = self.heads_of(self.check_outputs(target).to(arcs.device))
        wrong = (torch.arange(arcs.shape[2], device=arcs.device) != heads[..., None])[..., None]
        other = (torch.arange(arcs.shape[3], device=arcs.device) != labels[..., None])[..., None, :]
        of_label = torch.as_tensor(1.0 if cost is None else cost).to(arcs)
        return [torch.where(wrong, torch.ones_like(of_label), torch.where(other, of_label, torch.zeros_like(of_label)))]

    def restricted(self, allowed: Tensor) -> DependencyTree:
        """Only arcs that are allowed: bool, in the shape of the arcs."""
        (arcs,) = self.tensors
        return self._with([arcs.masked_fill(~self._full(allowed), -torch.inf)])

    def _full(self, allowed: Tensor) -> Tensor:
        allowed = self._padded_rows(allowed.to(self.tensors[0].device))
        allowed = allowed[..., None] if allowed.dim() == 3 else allowed
        try:
            return allowed.expand(self.tensors[0].shape)
        except RuntimeError:
            shape = tuple(self.tensors[0].shape)
            raise ValueError(f"Sets must have the shape of the scores, {shape}. Got {tuple(allowed.shape)}.") from None

    def _shaped(self, tensors: Sequence[Tensor]) -> Tensor:
        (arcs,) = tensors
        return self._packed_rows(arcs if self.labelled else arcs[..., 0])
