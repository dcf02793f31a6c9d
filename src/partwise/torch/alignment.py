"""Alignments of two sequences: which places stand opposite each other, with affine gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from partwise.structures.alignment.problem import GAP, MATCHED, gap_kinds
from partwise.torch.distribution import StructuredDistribution, check_scores, check_set, integers
from partwise.torch.end_to_end import EndToEnd, laid_end_to_end


class Alignment(StructuredDistribution):
    """The distribution over alignments of pairs of sequences.

        s(y) = sum of match[i, j] over pairs + sum of `opened`, `extended` over the places opposite gaps

    Parameters
    ----------
    match : Tensor (B, n, m), or (places, m) with `cu_seqlens`
        Scores of places opposite each other.
    opened, extended : Tensor or float
        Scores of the first place of a gap and of every further one: a number for all, (B,), or a pair of tensors (B, n) and
        (B, m), for places of the first and of the second sequence (with `cu_seqlens`, one for each of all places).
    end_opened, end_extended : the same, optional
        For gaps at the ends of a global alignment; like other gaps by default. What a local alignment leaves out costs nothing.
    lengths : integers (B, 2), optional
        Of the sequences of each pair; all (n, m) by default.
    cu_seqlens : pair of integers (B + 1,), optional
        Where first and second sequences begin that lie end to end (padded inside); m is then the length of the longest second
        one. Marginals of gaps are (places, 4) then.
    local : bool
        Whether the ends of both sequences may be left out.

    Notes
    -----
    An output is (B, n) integers: the partner of each place of the first sequence, or -1. `marginals` is a tuple of
    ``match`` (B, n, m) and the probabilities of gaps by kind, (B, 4, n) and (B, 4, m), kinds being opened, extended, and the
    same at the ends. Cost: O(n m) time and memory for each pair.

    Examples
    --------
    >>> pair = Alignment(torch.zeros(1, 2, 2), 0.0, 0.0)
    >>> round(float(pair.log_partition.exp()))  # no match, four of one, one of two
    6
    """

    structure = "alignment"

    def __init__(
        self,
        match: Tensor,
        opened: Any,
        extended: Any,
        end_opened: Any = None,
        end_extended: Any = None,
        *,
        lengths: Any = None,
        cu_seqlens: Any = None,
        local: bool = False,
        validate: bool = True,
    ):
        self.second: EndToEnd | None = None
        if cu_seqlens is not None:
            if not isinstance(cu_seqlens, tuple | list | Tensor) or len(cu_seqlens) != 2 or cu_seqlens[0] is None:
                raise ValueError("'cu_seqlens' must be a pair: where first sequences begin, and where second ones do.")
            match, self.packing = laid_end_to_end(match, cu_seqlens[0], lengths, what="places")
            self.second = EndToEnd(cu_seqlens[1], None, "places")
            assert self.packing is not None  # nested tensors have no pair
            if len(self.second.lengths) != len(self.packing.lengths):
                raise ValueError(
                    f"'cu_seqlens' have {len(self.packing.lengths)} first and {len(self.second.lengths)} second sequences."
                )
            match = self.packing.padded(check_scores(match, "match", 2, validate))
            lengths = torch.stack([self.packing.lengths, self.second.lengths], 1)
            if match.shape[2] != self.second.width:
                raise ValueError(
                    f"'match' must have {self.second.width} columns, the longest second sequence. Got {match.shape[2]}."
                )
            opened, extended, end_opened, end_extended = map(self._padded_gaps, (opened, extended, end_opened, end_extended))
        match = check_scores(match, "match", 3, validate)
        B, n, m = match.shape
        if lengths is None:
            lengths = torch.tensor([[n, m]] * B, dtype=torch.int64).reshape(B, 2)
        lengths = integers(lengths, "lengths").detach().to("cpu", torch.int64)
        if lengths.shape != (B, 2):
            raise ValueError(
                f"Expected the lengths of both sequences of each of the {B} pairs. Got shape {tuple(lengths.shape)}."
            )
        wrong = ((lengths < 0) | (lengths > torch.tensor([n, m]))).any(1)
        if not torch.compiler.is_compiling() and wrong.any():
            i = int(wrong.nonzero()[0])
            raise ValueError(f"pair {i}: its lengths must be at most ({n}, {m}). Got {tuple(lengths[i].tolist())}.")
        ends = (0.0, 0.0) if local else (opened, extended)
        kinds = [
            opened,
            extended,
            ends[0] if end_opened is None else end_opened,
            ends[1] if end_extended is None else end_extended,
        ]
        first = torch.stack([gaps(kind, 0, B, n, match) for kind in kinds], 1)
        second = torch.stack([gaps(kind, 1, B, m, match) for kind in kinds], 1)
        super().__init__((match, check_scores(first, "gaps", 3, validate), second), lengths, [int(local)], n)

    def _padded_gaps(self, given: Any) -> Any:
        """Scores of gaps for all places of both sequences as padded batches."""
        if not isinstance(given, tuple | list):
            return given
        return tuple(
            packing.padded(scores) if isinstance(scores, Tensor) and packing.is_packed(scores) else scores
            for packing, scores in zip((self.packing, self.second), given, strict=True)
        )

    def check_outputs(self, outputs: Tensor) -> Tensor:
        """Partners as int64 (B, n), -1 behind the end; an error names the pair and the place."""
        B, n, m = self.tensors[0].shape
        outputs = self._padded_rows(integers(outputs, "outputs"))
        if outputs.shape != (B, n):
            raise ValueError(
                f"Expected a partner, or -1, for each place of the first sequence, ({B}, {n}). Got {tuple(outputs.shape)}."
            )
        outputs = torch.where(self._inside().to(outputs.device), outputs.long(), GAP)
        if torch.compiler.is_compiling():
            return outputs
        for b, y in enumerate(outputs.cpu().tolist()):
            last = -1
            for i, j in enumerate(y):
                if j >= int(self.lengths[b, 1]) or j < GAP or (j >= 0 and j <= last):
                    raise ValueError(
                        f"pair {b}, place {i}: partners must rise and be below {int(self.lengths[b, 1])}, or be -1. Got {j}."
                    )
                last = j if j >= 0 else last
        return outputs

    def parts_of(self, outputs: Tensor) -> list[Tensor]:
        """Which parts given outputs are made of, as tensors of zeros and ones in the shapes of the scores."""
        match = self.tensors[0]
        found = parts_of_alignments(self.check_outputs(outputs), self.lengths, match.shape[2], bool(self.sizes[0]))
        return [part.to(match) for part in found]

    def score_of(self, outputs: Tensor) -> Tensor:
        total = torch.zeros((), device=self.tensors[0].device)
        for score, part in zip(self.tensors, self.parts_of(outputs), strict=True):
            total = total + torch.where(part > 0, score, 0.0).flatten(1).sum(1)
        return total

    def _outputs(self, found: Tensor) -> Tensor:
        return torch.where(self._inside(), found, GAP)

    def cost_tensors(self, target: Any, cost: Any = None) -> list[Tensor | None]:
        """`cost`, 1 by default, for each place of the first sequence that has a true partner and not got it."""
        match, first, _ = self.tensors
        target = self.check_outputs(target).to(match.device)
        weight = torch.as_tensor(1.0 if cost is None else cost).to(match)
        matched = (target >= 0)[..., None]
        wrong = torch.arange(match.shape[2], device=match.device) != target[..., None]
        of_gap = torch.where(matched[..., 0], weight, torch.zeros_like(weight))[:, None].expand(first.shape)
        return [torch.where(matched & wrong, weight, torch.zeros_like(weight)), of_gap, None]

    def restricted(self, allowed: Tensor) -> Alignment:
        """Only matches that are allowed: (B, n, m) bool."""
        (match, first, second), allowed = self.tensors, self._padded_rows(check_set(allowed))
        return self._with([match.masked_fill(~allowed.to(match.device), -torch.inf), first, second])

    def _shaped(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        match, first, second = tensors
        if self.packing is None or self.second is None:
            return match, first, second
        return self.packing.packed(match), self.packing.packed(first.mT), self.second.packed(second.mT)


@torch.library.custom_op("partwise::alignment_parts", mutates_args=())
def parts_of_alignments(outputs: Tensor, lengths: Tensor, m: int, local: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Which pairs and which gaps by kind alignments (B, n) have: (B, n, m), (B, 4, n), (B, 4, m), bool on the CPU."""
    B, n = outputs.shape
    parts = tuple(torch.zeros(shape, dtype=torch.bool) for shape in ((B, n, m), (B, 4, n), (B, 4, m)))
    for b, (rows, columns) in enumerate(lengths.tolist()):
        y = outputs[b, :rows].cpu().numpy()
        of_x, of_y = torch.empty(rows, dtype=torch.int8), torch.empty(columns, dtype=torch.int8)
        gap_kinds(y, columns, local, of_x.numpy(), of_y.numpy())
        for i in range(rows):
            if of_x[i] == MATCHED:
                parts[0][b, i, int(y[i])] = True
            else:
                parts[1][b, int(of_x[i]), i] = True
        for j in range(columns):
            if of_y[j] != MATCHED:
                parts[2][b, int(of_y[j]), j] = True
    return parts


@parts_of_alignments.register_fake
def _(outputs: Tensor, lengths: Tensor, m: int, local: bool) -> tuple[Tensor, Tensor, Tensor]:
    B, n = outputs.shape
    of = {"dtype": torch.bool, "device": "cpu"}
    return torch.empty(B, n, m, **of), torch.empty(B, 4, n, **of), torch.empty(B, 4, m, **of)


def gaps(given: Any, side: int, B: int, size: int, like: Tensor) -> Tensor:
    """Scores of gaps for each place, (B, size), from a number, a number for each pair, or a pair of tensors."""
    if isinstance(given, tuple | list):
        if len(given) != 2:
            raise ValueError(f"Scores of gaps are those of both sequences: a pair. Got {len(given)}.")
        given = given[side]
    scores = torch.as_tensor(given).to(like)
    scores = scores[:, None] if scores.dim() == 1 else scores
    try:
        return scores.expand(B, size)
    except RuntimeError:
        message = f"Scores of gaps must be a number, ({B},), or a pair of (B, places). Got shape {tuple(scores.shape)}."
        raise ValueError(message) from None
