"""Dependency trees: a head, and a label of the arc from it, for each word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

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


class DependencyTree(StructuredDistribution):
    """The distribution over trees whose arcs have scores.

        s(y) = sum_m arcs[m, head(m), label(m)]  +  sum_m siblings[m, head(m), next(m)]

    the arcs head(m) -> m being a tree below the root, and next(m) the next word towards the head that hangs from it on the side of
    m; 0 if there is none.

    Parameters
    ----------
    arcs : Tensor (B, n, n + 1) or (B, n, n + 1, L), or (words, n + 1) or (words, n + 1, L) with `cu_seqlens`
        Score of the arc to word m (0 .. n - 1) from head h: 0 is the root, h the h-th word. What a word has for itself is never
        looked at, and padding may hold anything.
    siblings : Tensor (B, n, n + 1, n + 1), or (words, n + 1, n + 1) with `cu_seqlens`, optional
        Scores of second order, of projective trees: siblings[m, h, r] of the arc to word m from head h where the r-th word is the
        next one towards the head that hangs from it, too; r = 0 if there is none.
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
    apart). `marginals` has the shape of `arcs`, and is a pair where there are siblings. Cost: O(n^2 L), and O(n^2) time for the best
    tree, O(n^3) for the best projective one and for sums.

    Spanning trees without directions are trees below the first node, whichever it is: of symmetric scores (B, N, N) they are
    ``DependencyTree(scores[:, 1:], single_root=False)``, nodes 1 to N - 1 being the words.

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
        siblings: Tensor | None = None,
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
        check_labels(arcs, "arcs")
        self.projective, self.single_root = bool(projective), bool(single_root)
        if siblings is None:
            super().__init__((arcs,), lengths, [arcs.shape[-1], int(projective), int(single_root)], n)
            return
        if not projective:
            raise ValueError("Scores of 'siblings' are for projective trees: say projective=True.")
        siblings = check_scores(siblings, "siblings", 4 if self.packing is None else 3, validate)
        check_device(siblings, "siblings", arcs, "arcs")
        siblings = self._padded_rows(siblings).to(arcs.dtype)
        if siblings.shape != (B, n, n + 1, n + 1):
            raise ValueError(f"'siblings' must have shape ({B}, {n}, {n + 1}, {n + 1}). Got {tuple(siblings.shape)}.")
        self.structure = "sibling_tree"
        super().__init__((arcs, siblings), lengths, [arcs.shape[-1], int(single_root)], n)

    @property
    def n_labels(self) -> int:
        """L; 1 where arcs have no labels."""
        return int(self.sizes[0])

    def heads_of(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Heads and labels of outputs."""
        return outputs // self.n_labels, outputs % self.n_labels

    def check_outputs(self, outputs: Tensor) -> Tensor:
        """Outputs as int64 (B, n), zero behind the end of a sentence; an error names the sentence and the word."""
        outputs, (B, n) = self._padded_rows(integers(outputs, "outputs")), self.tensors[0].shape[:2]
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

    def check_possible(self, outputs: Tensor) -> None:
        """Heads must make a tree of the wanted kind; an error names the sentence."""
        outputs = self.check_outputs(outputs)
        if outputs.device.type != "cpu" or torch.compiler.is_compiling() or not self.width:
            return
        (heads, _), inside = self.heads_of(outputs), self._inside().to("cpu")
        whole = torch.nn.functional.pad(heads, (1, 0))
        above = whole
        for _ in range(self.width.bit_length()):
            above = above.gather(1, above)
        what = "its words are each other's heads: that is no tree"
        wrong = above.any(1)
        if self.single_root and not wrong.any():
            wrong, what = ((heads == 0) & inside).sum(1) > 1, "several words hang from the root, and single_root=True"
        if self.projective and not wrong.any():
            word = torch.arange(1, self.width + 1)
            low, high = torch.minimum(word, heads), torch.maximum(word, heads)
            a, b, c, d = low[:, :, None], high[:, :, None], low[:, None], high[:, None]
            cross = (a < c) & (c < b) & (b < d) & inside[:, :, None] & inside[:, None]
            wrong, what = cross.flatten(1).any(1), "its arcs cross, and projective=True"
        if wrong.any():
            i = int(wrong.nonzero()[0])
            raise ValueError(f"sentence {i}: {what}. Got the heads {heads[i, : int(self.lengths[i])].tolist()}.")

    def score_of(self, outputs: Tensor) -> Tensor:
        arcs, *siblings = self.tensors
        outputs = self.check_outputs(outputs).to(arcs.device)
        gained = arcs.flatten(2).gather(2, outputs[..., None])[..., 0]
        if siblings:
            heads = self.heads_of(outputs)[0]
            places = heads * arcs.shape[2] + self._next_siblings(heads)
            gained = gained + siblings[0].flatten(2).gather(2, places[..., None])[..., 0]
        return torch.where(self._inside(), gained, 0.0).sum(1)

    def _next_siblings(self, heads: Tensor) -> Tensor:
        """Of each word the next one towards its head that hangs from it, too; 0 if there is none."""
        n = heads.shape[1]
        word = torch.arange(1, n + 1, device=heads.device)
        one, two, head = word[:, None], word, heads[..., None]
        between = (heads[:, None] == head) & (two > torch.minimum(one, head)) & (two < torch.maximum(one, head))
        near = torch.where(between & self._inside()[:, None], n + 1 - (one - two).abs(), 0)
        if not n:
            return heads
        top, at = near.max(-1)
        return torch.where(top > 0, at + 1, 0)

    def cost_tensors(self, target: Any, cost: Any = None) -> list[Tensor | None]:
        """1 for a wrong head; for a wrong label of the right head `cost`, 1 by default. Sets of arcs, bool: 1 outside the set."""
        arcs, *others = self.tensors
        rest = [None] * len(others)
        if isinstance(target, Tensor) and target.dtype == torch.bool:
            fine = self._full(target)
            return [(~fine).to(arcs) * fine.flatten(2).any(-1)[..., None, None], *rest]
        heads, labels = self.heads_of(self.check_outputs(target).to(arcs.device))
        wrong = (torch.arange(arcs.shape[2], device=arcs.device) != heads[..., None])[..., None]
        other = (torch.arange(arcs.shape[3], device=arcs.device) != labels[..., None])[..., None, :]
        of_label = torch.as_tensor(1.0 if cost is None else cost).to(arcs)
        return [torch.where(wrong, torch.ones_like(of_label), torch.where(other, of_label, torch.zeros_like(of_label))), *rest]

    def restricted(self, allowed: Tensor) -> DependencyTree:
        """Only arcs that are allowed: bool, in the shape of the arcs."""
        arcs, *siblings = self.tensors
        return self._with([arcs.masked_fill(~self._full(allowed), -torch.inf), *siblings])

    def _full(self, allowed: Tensor) -> Tensor:
        allowed = self._padded_rows(check_set(allowed).to(self.tensors[0].device))
        allowed = allowed[..., None] if allowed.dim() == 3 else allowed
        try:
            return allowed.expand(self.tensors[0].shape)
        except RuntimeError:
            shape = tuple(self.tensors[0].shape)
            raise ValueError(f"Sets must have the shape of the scores, {shape}. Got {tuple(allowed.shape)}.") from None

    def _shaped(self, tensors: Sequence[Tensor]) -> Any:
        arcs, *siblings = tensors
        arcs = self._packed_rows(arcs if self.labelled else arcs[..., 0])
        return (arcs, self._packed_rows(siblings[0])) if siblings else arcs
