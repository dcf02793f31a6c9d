"""Batches without padding: examples that lie end to end (`cu_seqlens`), or in a nested tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class EndToEnd:
    """Examples that lie end to end, without padding, and the padded batch that they become: rows (B, longest).

    Parameters
    ----------
    cu_seqlens : integers (B + 1,)
        Where each example begins, and the end of the last one.
    rows : int or None
        How many rows there are in all; None: as many as it says.
    what : str
        What an example is called, in errors.
    """

    def __init__(self, cu_seqlens: Any, rows: int | None, what: str = "tokens"):
        ends = torch.as_tensor(cu_seqlens).detach().to("cpu", torch.int64)
        if rows is None:
            rows = int(ends[-1]) if ends.dim() == 1 and len(ends) else 0
        if ends.dim() != 1 or not len(ends) or ends[0] != 0 or ends[-1] != rows or (ends.diff() < 0).any():
            raise ValueError(f"'cu_seqlens' must rise from 0 to the number of {what}, {rows}. Got {ends.tolist()[:8]}.")
        self.begins, self.lengths, self.rows = ends[:-1], ends.diff(), rows
        self.width = int(self.lengths.max()) if len(self.lengths) else 0

    def _places(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """The row of each place of the padded batch, 0 for padding, and which places are not padding; both (B, longest)."""
        place = torch.arange(self.width)
        inside = place < self.lengths[:, None]
        return torch.where(inside, self.begins[:, None] + place, 0).to(device), inside.to(device)

    def padded(self, rows: Tensor) -> Tensor:
        """(rows, ...) as (B, longest, ...)."""
        at, inside = self._places(rows.device)
        if not self.rows:
            return rows.new_zeros(*at.shape, *rows.shape[1:])
        found = rows[at]
        return torch.where(inside.reshape(*at.shape, *[1] * (rows.dim() - 1)), found, torch.zeros_like(found))

    def packed(self, batch: Tensor) -> Tensor:
        """(B, longest, ...) as (rows, ...)."""
        return batch[self._places(batch.device)[1]]

    def is_packed(self, values: Any) -> bool:
        """Whether something has an entry for each row rather than for each place of the padded batch."""
        return isinstance(values, Tensor) and values.shape[:2] != (len(self.lengths), self.width) and len(values) == self.rows


def laid_end_to_end(
    scores: Any, cu_seqlens: Any, lengths: Any, *others: Any, what: str = "tokens"
) -> tuple[Any, EndToEnd | None]:
    """Scores and how they are packed: by `cu_seqlens`, or as a nested tensor (``layout=torch.jagged``); None if they are not."""
    if isinstance(scores, Tensor) and scores.is_nested:
        if scores.layout != torch.jagged or cu_seqlens is not None:
            raise ValueError("Nested scores must have the layout torch.jagged, and need no 'cu_seqlens'.")
        scores, cu_seqlens = scores.values(), scores.offsets()
    if cu_seqlens is None:
        return scores, None
    if lengths is not None or any(other is not None for other in others):
        raise ValueError("Give 'cu_seqlens', or 'lengths' or 'mask', not both.")
    return scores, EndToEnd(cu_seqlens, len(scores), what)
