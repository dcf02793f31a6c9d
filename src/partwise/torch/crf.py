"""A conditional random field as a layer: a drop-in for pytorch-crf, with every loss of the library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from partwise.losses.loss import Loss
from partwise.torch import cuda
from partwise.torch.linear_chain import LinearChain, is_set_of_labels, lengths_of
from partwise.torch.losses import structured_loss

REDUCTIONS = ("none", "sum", "mean", "token_mean")


class CRF(nn.Module):
    """Transitions, start and end scores of a linear chain, and what to do with the emissions of a network.

    Parameters
    ----------
    num_tags : int
        Number of labels.
    batch_first : bool
        Whether emissions are (batch, tokens, labels); else (tokens, batch, labels), as in pytorch-crf.
    loss : str or Loss
        What `forward` is the negative of: "crf", "hinge", "ramp" ... (`structured_loss`).
    cost : matrix (L, L), optional
        Of answering the column for the row; Hamming by default.
    constraints : iterable of (before, after), optional
        Transitions that may not happen; None as `before` is the beginning, as `after` the end of a sequence.
    validate : bool
        Whether masks on a CUDA device are looked at, for which the device has to be waited for.

    Notes
    -----
    Constructor, methods, results and the names in the state dict are those of pytorch-crf 0.7: ``from partwise.torch import CRF``
    replaces ``from torchcrf import CRF``. Beyond it: `loss`, `cost`, `constraints`, targets that are sets of labels,
    `marginals`, ``decode(k=)`` and `distribution`.

    Examples
    --------
    >>> layer = CRF(5, batch_first=True)
    >>> emissions, tags = torch.randn(2, 3, 5), torch.tensor([[0, 1, 2], [3, 4, 0]])
    >>> loss = -layer(emissions, tags, reduction="mean")
    >>> len(layer.decode(emissions))
    2
    """

    def __init__(
        self,
        num_tags: int,
        batch_first: bool = False,
        *,
        loss: str | Loss = "crf",
        cost: Any = None,
        constraints: Iterable[tuple[int | None, int | None]] = (),
        validate: bool = True,
    ):
        if num_tags <= 0:
            raise ValueError(f"invalid number of tags: {num_tags}")
        super().__init__()
        self.num_tags, self.batch_first, self.loss, self.validate = num_tags, batch_first, loss, validate
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.register_buffer("cost", None if cost is None else torch.as_tensor(cost, dtype=torch.float32), persistent=False)
        wall = torch.zeros(num_tags + 1, num_tags + 1)
        for before, after in constraints:
            wall[num_tags if before is None else before, num_tags if after is None else after] = -torch.inf
        self.register_buffer("wall", wall if bool(wall.any()) else None, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters uniformly from [-0.1, 0.1]."""
        for parameter in (self.start_transitions, self.end_transitions, self.transitions):
            nn.init.uniform_(parameter, -0.1, 0.1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_tags={self.num_tags})"

    def distribution(self, emissions: Tensor, mask: Tensor | None = None) -> LinearChain:
        """The distribution over label sequences for the emissions of a batch."""
        emissions, _, mask = self._batch(emissions, None, mask)
        start, stop, transitions = self._tables()
        return LinearChain(emissions, transitions, start, stop, mask=mask)

    def forward(self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "sum") -> Tensor:
        """Minus the loss: for "crf", the log-likelihood of the tags.

        Parameters
        ----------
        emissions : Tensor (T, B, L), or (B, T, L) if `batch_first`
        tags : Tensor (T, B) or (B, T); or (..., L) bool: acceptable labels of each token
        mask : Tensor (T, B) or (B, T), optional
            Which tokens there are: up to the end of each sequence.
        reduction : {"none", "sum", "mean", "token_mean"}
        """
        if reduction not in REDUCTIONS:
            raise ValueError(f"invalid reduction: {reduction}")
        emissions, tags, mask = self._batch(emissions, tags, mask)
        if self.loss == "crf" and tags.dtype != torch.bool and cuda.serves("chain", (emissions,), None):
            return self._fused(emissions, tags, mask, reduction)
        batch_first, self.batch_first = self.batch_first, True
        try:
            chain = self.distribution(emissions, mask)
        finally:
            self.batch_first = batch_first
        values = -structured_loss(chain, tags, self.loss, cost=self.cost, reduction="none")
        if reduction == "none":
            return values
        if reduction == "sum":
            return values.sum()
        if reduction == "mean":
            return values.mean()
        return values.sum() / chain.lengths.sum()

    def _fused(self, emissions: Tensor, tags: Tensor, mask: Tensor | None, reduction: str) -> Tensor:
        """The log-likelihood on a CUDA device: one operator, nothing that waits for the device but the check of the mask."""
        from partwise.torch.cuda import chain

        lengths = None
        if mask is not None:
            watched = not torch.compiler.is_compiling() and not torch.cuda.is_current_stream_capturing()
            lengths = lengths_of(mask, *emissions.shape[:2]) if watched and self.validate else mask.sum(1)
        start, stop, transitions = self._tables()
        values = -chain.loss(emissions, tags, lengths, transitions, start, stop)
        if reduction == "none":
            return values
        if reduction == "token_mean":
            return values.sum() / (emissions.shape[0] * emissions.shape[1] if mask is None else mask.sum())
        return values.sum() if reduction == "sum" else values.mean()

    def _tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """Start, stop and transition scores, -inf where they may not happen."""
        start, stop, transitions = self.start_transitions, self.end_transitions, self.transitions
        if self.wall is not None:
            start, stop = start + self.wall[-1, :-1], stop + self.wall[:-1, -1]
            transitions = transitions + self.wall[:-1, :-1]
        return start, stop, transitions

    def decode(self, emissions: Tensor, mask: Tensor | None = None, k: int | None = None) -> list:
        """The best labels of each sequence, as lists; with `k` the k best, a list of lists for each."""
        chain = self.distribution(emissions, mask)
        lengths = chain.lengths.tolist()
        if k is None:
            return [y[:n] for y, n in zip(chain.argmax.tolist(), lengths, strict=True)]
        outputs, values = chain.topk(k)
        found = torch.isfinite(values).sum(1).tolist()
        return [[y[:n] for y in ys[:some]] for ys, n, some in zip(outputs.tolist(), lengths, found, strict=True)]

    def marginals(self, emissions: Tensor, mask: Tensor | None = None) -> Tensor:
        """The probability of each label at each token, in the shape of the emissions; zero behind the end."""
        found = self.distribution(emissions, mask).marginals[0]
        return found if self.batch_first else found.transpose(0, 1)

    def _batch(self, emissions: Tensor, tags: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Any, Tensor | None]:
        """Batch first, checked as pytorch-crf does."""
        if emissions.dim() != 3:
            raise ValueError(f"emissions must have dimension of 3, got {emissions.dim()}")
        if emissions.size(2) != self.num_tags:
            raise ValueError(f"expected last dimension of emissions is {self.num_tags}, got {emissions.size(2)}")
        for name, given in (("tags", tags), ("mask", mask)):
            if given is not None and given.shape[:2] != emissions.shape[:2]:
                raise ValueError(
                    f"the first two dimensions of emissions and {name} must match, got {tuple(emissions.shape[:2])} and "
                    f"{tuple(given.shape[:2])}"
                )
        if tags is not None and not is_set_of_labels(tags, self.num_tags) and tags.dim() != 2:
            raise ValueError(f"tags must have dimension of 2, or be sets of labels; got {tuple(tags.shape)}")
        if (
            mask is not None
            and emissions.size(0 if not self.batch_first else 1)
            and emissions.size(1 if not self.batch_first else 0)
        ):
            first = mask[:, 0] if self.batch_first else mask[0]
            if mask.device.type == "cpu" and not torch.compiler.is_compiling() and not bool(first.bool().all()):
                raise ValueError("mask of the first timestep must all be on")
        if not self.batch_first:
            emissions = emissions.transpose(0, 1)
            tags = tags.transpose(0, 1) if tags is not None else None
            mask = mask.transpose(0, 1) if mask is not None else None
        return emissions, tags, mask
