"""Segmentations: sequences cut into labelled pieces."""

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
from partwise.torch.linear_chain import lengths_of, transitions_table


class SemiMarkov(StructuredDistribution):
    """The distribution over segmentations of a semi-Markov conditional random field (Sarawagi and Cohen 2004).

        s(y) = sum over segments (a, d, k) of segments[a, d - 1, k] + transitions[k', k],  with start and stop scores at the ends

    Parameters
    ----------
    segments : Tensor (B, T, D, K), or (tokens, D, K) with `cu_seqlens`
        Score of the segment that begins at token a, has d tokens (index d - 1) and label k. What reaches over the end of a
        sequence is never looked at.
    transitions : Tensor (K, K) or (B, K, K), optional
        Scores of a label after that of the segment before; zero by default.
    start, stop : Tensor (K,) or (B, K), optional
        Of the labels of the first and the last segment.
    lengths : integers (B,), optional
    mask : bool Tensor (B, T), optional
        Instead of lengths.
    cu_seqlens : integers (B + 1,), optional
        Where sequences begin that lie end to end (padded inside). A nested tensor (torch.jagged) says it itself.

    Notes
    -----
    An output is (B, T) integers: K + k where a segment of label k begins, k where it goes on (`spans_of` lists them). `marginals`
    is a tuple ``(segments, transitions, start, stop)`` in the shapes of the scores, with an entry for each sequence. Cost:
    O(T D K + T K^2) time, O(T D K) memory.

    Examples
    --------
    >>> pieces = SemiMarkov(torch.zeros(1, 3, 3, 1))
    >>> round(float(pieces.log_partition.exp()))  # ways to cut three tokens
    4
    >>> pieces.spans_of(torch.tensor([[1, 0, 1]]))
    [[(0, 2, 0), (2, 3, 0)]]
    """

    structure = "segments"

    def __init__(
        self,
        segments: Tensor,
        transitions: Tensor | None = None,
        start: Tensor | None = None,
        stop: Tensor | None = None,
        *,
        lengths: Any = None,
        mask: Tensor | None = None,
        cu_seqlens: Any = None,
        validate: bool = True,
    ):
        segments, self.packing = laid_end_to_end(segments, cu_seqlens, lengths, mask)
        segments = check_scores(segments, "segments", 4 if self.packing is None else 3, validate)
        if self.packing is not None:
            segments, lengths = self.packing.padded(segments), self.packing.lengths
        check_labels(segments, "segments")
        B, T, D, K = segments.shape
        if mask is not None:
            lengths = lengths_of(mask, B, T, lengths)
        lengths = check_lengths(lengths, B, T, "sequence")
        if D == 0 and int(lengths.max() if B else 0):
            raise ValueError("'segments' has no length at all: its third dimension is the longest segment.")
        table = transitions_table(transitions, start, B, K, segments, validate)
        stop = torch.zeros(1, K, dtype=segments.dtype, device=segments.device) if stop is None else stop
        stop = check_scores(stop[None] if isinstance(stop, Tensor) and stop.dim() == 1 else stop, "stop", 2, validate)
        check_device(stop, "stop", segments, "segments")
        if stop.shape not in ((1, K), (B, K)):
            raise ValueError(f"'stop' must have shape ({K},) or ({B}, {K}). Got {tuple(stop.shape)}.")
        codes = torch.zeros(B, T, 2 * K, dtype=segments.dtype, device=segments.device)
        super().__init__((codes, segments, table, stop), lengths, [K, D], T)

    @property
    def n_labels(self) -> int:
        """K."""
        return int(self.sizes[0])

    def check_outputs(self, outputs: Tensor) -> Tensor:
        """Codes as int64 (B, T), zero behind the end; an error names the sequence and the token."""
        (B, T), (K, D) = self.tensors[0].shape[:2], self.sizes
        outputs = self._padded_rows(integers(outputs, "outputs"))
        if outputs.shape != (B, T):
            raise ValueError(f"Expected a code for each token, shape ({B}, {T}). Got shape {tuple(outputs.shape)}.")
        outputs = torch.where(self._inside().to(outputs.device), outputs.long(), 0)
        if outputs.device.type == "cpu" and not torch.compiler.is_compiling():
            for i, spans in enumerate(self.spans_of(outputs)):
                for a, e, k in spans:
                    codes = outputs[i, a:e].tolist()
                    if not 0 <= k < K or codes != [K + k] + [k] * (e - a - 1):
                        raise ValueError(f"sequence {i}, token {a}: {codes} is no segment: {K} + k begins one, k goes on.")
                    if e - a > D:
                        raise ValueError(f"sequence {i}, token {a}: a segment of {e - a} tokens, where the longest has {D}.")
        return outputs

    def spans_of(self, outputs: Tensor) -> list[list[tuple[int, int, int]]]:
        """For each sequence its segments: first token, one past the last, label."""
        K, found = self.n_labels, []
        for codes, n in zip(outputs.tolist(), self.lengths.tolist(), strict=True):
            begins = [t for t in range(n) if t == 0 or codes[t] >= K]
            ends = [*begins[1:], n] if n else []
            found.append([(a, e, codes[a] - K) for a, e in zip(begins, ends, strict=True)])
        return found

    def score_of(self, outputs: Tensor) -> Tensor:
        codes, segments, table, stop = self.tensors
        K, n, inside = self.n_labels, self.lengths.shape[0], self._inside()
        outputs = self.check_outputs(outputs).to(codes.device)
        if not self.width or not self.sizes[1]:  # no tokens
            return codes.new_zeros(n)
        place = torch.arange(self.width, device=codes.device)
        begins = (outputs >= K) & inside
        ends = torch.where(begins, place, self.width)
        following = torch.cat([ends[:, 1:], torch.full_like(ends[:, :1], self.width)], 1).flip(1).cummin(1).values.flip(1)
        size = torch.minimum(following, self.lengths.to(codes.device)[:, None]) - place
        label = torch.where(begins, outputs - K, 0)
        before = torch.where(begins, place, -1).cummax(1).values
        earlier = torch.cat([torch.full_like(before[:, :1], -1), before[:, :-1]], 1)
        last = torch.where(earlier >= 0, label.gather(1, earlier.clamp(min=0)), K)
        which = torch.arange(n, device=codes.device)[:, None]
        of = which if table.shape[0] > 1 else torch.zeros_like(which)
        gained = segments[which, place, (size - 1).clamp(0, self.sizes[1] - 1), label] + table[of, last, label]
        total = torch.where(begins, gained, 0.0).sum(1)
        total = total + torch.where(inside, codes.gather(2, outputs[..., None])[..., 0], 0.0).sum(1)
        final = label.gather(1, before[:, -1:].clamp(min=0))[:, 0]
        return total + torch.where(inside[:, 0], stop[of[:, 0] if stop.shape[0] > 1 else 0, final], 0.0)

    def cost_tensors(self, target: Any, cost: Any = None) -> list[Tensor | None]:
        """1 for each token whose code is wrong, or ``cost[true code, code]``."""
        codes, size = self.tensors[0], 2 * self.n_labels
        matrix = 1 - torch.eye(size) if cost is None else torch.as_tensor(cost)
        if matrix.shape != (size, size):
            raise ValueError(f"'cost' must be a matrix ({size}, {size}) of codes [true, answered]. Got {tuple(matrix.shape)}.")
        if matrix.device.type == "cpu" and not torch.compiler.is_compiling() and not matrix.isfinite().all():
            raise ValueError("'cost' must be finite.")
        if isinstance(target, Tensor) and target.dtype == torch.bool:
            target = self._padded_rows(target)
            far = torch.full((), torch.inf, dtype=codes.dtype, device=codes.device)
            costs = torch.where(target[..., None].to(codes.device), matrix.to(codes), far).amin(2)
            return [torch.where(target.any(-1, keepdim=True), costs, 0.0), None, None, None]
        return [matrix.to(codes)[self.check_outputs(target).to(codes.device)], None, None, None]

    def restricted(self, allowed: Tensor) -> SemiMarkov:
        """Only codes that are allowed: (B, T, 2 K) bool."""
        codes, allowed = self.tensors[0], self._padded_rows(check_set(allowed))
        return self._with([codes.masked_fill(~allowed.to(codes.device), -torch.inf), *self.tensors[1:]])

    def _shaped(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        _, segments, table, stop = tensors
        return self._packed_rows(segments), table[:, :-1], table[:, -1], stop
