"""A conditional random field as a layer: a drop-in for pytorch-crf, with every loss of the library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from partwise.losses.loss import Loss
from partwise.losses.records import LOSSES
from partwise.tasks.tagging.constraints import forbidden_transitions, scheme_transitions
from partwise.torch.chain_ops import ChainBatch, chain_best, chain_loss, few_labels, whole_batch
from partwise.torch.distribution import refuse_vmap
from partwise.torch.linear_chain import LinearChain, is_set_of_labels, lengths_of
from partwise.torch.losses import structured_loss
from partwise.torch.operators import compiled_here, launched_here

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
        Transitions that may not happen; None as `before` is the beginning, as `after` the end of a sequence. Or the name of a
        scheme of chunks, "iob1", "iob2", "iobes" or "bilou", for `labels`.
    labels : list of str, optional
        What the labels are called, for schemes.
    validate : bool
        Whether masks and tags on a CUDA device are looked at, for which the device has to be waited for.

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
        constraints: Iterable[tuple[int | None, int | None]] | str = (),
        labels: Sequence[str] | None = None,
        validate: bool = True,
    ):
        if not isinstance(num_tags, int) or num_tags <= 0:
            raise ValueError(f"invalid number of tags: {num_tags}")
        super().__init__()
        self.num_tags, self.batch_first, self.loss, self.validate = num_tags, batch_first, loss, validate
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.register_buffer("cost", None if cost is None else torch.as_tensor(cost, dtype=torch.float32), persistent=False)
        if isinstance(constraints, str):
            if labels is None or len(labels) != num_tags:
                raise ValueError(f"The scheme {constraints!r} needs labels=, the names of all {num_tags} labels.")
            constraints = scheme_transitions(constraints, list(labels), "CRF")
        self.forbid(constraints)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters uniformly from [-0.1, 0.1]."""
        for parameter in (self.start_transitions, self.end_transitions, self.transitions):
            nn.init.uniform_(parameter, -0.1, 0.1)

    @classmethod
    def from_labeler(cls, model: Any, **options: Any) -> CRF:
        """A layer with the transitions, constraints and loss of a fitted `SequenceLabeler`, labels in the order of ``classes_``.

        The weights of its features, ``model.coef_``, (labels, features), are those of a linear map without bias before it.
        `options` are those of the constructor; layers are ``batch_first`` by default here.
        """
        if model.order != 1 or model.hidden != 1:
            raise ValueError("A layer has weights of single transitions: expected a model with order=1 and hidden=1.")
        found = cls(len(model.classes_), **{"batch_first": True, "loss": model.loss, **options})
        found.load_state_dict(
            {
                "transitions": torch.as_tensor(model.transitions_.copy()),
                "start_transitions": torch.as_tensor(model.start_.copy()),
                "end_transitions": torch.as_tensor(model.stop_.copy()),
            }
        )
        if "constraints" not in options:
            found.forbid(forbidden_transitions(model.constraints, model.classes_, "SequenceLabeler"))
        return found

    def forbid(self, constraints: Iterable[tuple[int | None, int | None]]) -> None:
        """Let these transitions, and no others, never happen: `constraints`."""
        n, self.constraints = self.num_tags, list(constraints)
        wall = torch.zeros(n + 1, n + 1, device="cpu")  # whatever the default is: models may be made on the device "meta"
        for before, after in self.constraints:
            if not all(label is None or 0 <= label < n for label in (before, after)):
                raise ValueError(f"The transition {(before, after)!r} is not one of {n} labels, numbered from 0.")
            wall[n if before is None else before, n if after is None else after] = -torch.inf
        wall = wall.to(self.transitions.dtype)
        if self.transitions.device.type != "meta":
            wall = wall.to(self.transitions.device)
        self.register_buffer("wall", wall if self.constraints else None, persistent=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_tags={self.num_tags})"

    def distribution(self, emissions: Tensor, mask: Tensor | None = None) -> LinearChain:
        """The distribution over label sequences for the emissions of a batch."""
        emissions, _, mask = self._batch(emissions, None, mask)
        return self._distribution(emissions, mask)

    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Transitions, start and end scores; -inf what constraints forbid."""
        start, stop, transitions = self.start_transitions, self.end_transitions, self.transitions
        if self.wall is not None:
            start, stop = start + self.wall[-1, :-1], stop + self.wall[:-1, -1]
            transitions = transitions + self.wall[:-1, :-1]
        return transitions, start, stop

    def _distribution(self, emissions: Tensor, mask: Tensor | None) -> LinearChain:
        return LinearChain(emissions, *self._scores(), mask=mask)

    def _quick_batch(self, emissions: Tensor, mask: Tensor | None) -> ChainBatch | None:
        """The batch, first dimension first, for the loops of `chain_ops`, if they can take it."""
        B, T = emissions.shape[:2]
        begins, lengths = whole_batch(B, T)
        if mask is not None:
            lengths = lengths_of(mask, B, T)
        if emissions.dtype in (torch.float16, torch.bfloat16):
            emissions = emissions.float()
        batch = ChainBatch(emissions, *self._scores(), begins, lengths)
        return batch if batch.is_quick and compiled_here(batch[:1]) else None

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
        plain = self.loss in ("crf", LOSSES["crf"]) and not is_set_of_labels(tags, self.num_tags)
        if plain and launched_here("chain", (emissions,), None):
            return self._fused(emissions, tags, mask, reduction)
        batch = self._quick_batch(emissions, mask) if plain and reduction != "none" else None
        if batch is not None:
            n = emissions.shape[0] if reduction == "mean" else batch.lengths.sum() if reduction == "token_mean" else 1
            each = torch.ones(emissions.shape[0]) if reduction == "sum" else torch.ones(emissions.shape[0]) / n
            return -chain_loss(batch, tags.to("cpu", torch.int64), each)
        chain = self._distribution(emissions, mask)
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

        lengths = self._lengths(emissions, mask, tags)
        transitions, start, stop = self._scores()
        values = -chain.loss(emissions, tags, lengths, transitions, start, stop)
        if reduction == "none":
            return values
        if reduction == "token_mean":
            return values.sum() / (emissions.shape[0] * emissions.shape[1] if mask is None else mask.sum())
        return values.sum() if reduction == "sum" else values.mean()

    def _lengths(self, emissions: Tensor, mask: Tensor | None, tags: Tensor | None = None) -> Tensor | None:
        """Lengths on a CUDA device; None for those of the emissions. What can be seen of the mask and the tags is checked."""
        B, T = emissions.shape[:2]
        if not self.validate or torch.compiler.is_compiling() or torch.cuda.is_current_stream_capturing():
            return None if mask is None else mask.sum(1)
        if tags is not None:
            wrong = (tags < 0) | (tags >= self.num_tags)
            wrong = wrong if mask is None else wrong & mask.bool()
            if bool(wrong.any()):
                i, t = wrong.nonzero()[0].tolist()
                raise ValueError(
                    f"sequence {i}, token {t}: its tag must be from 0 to {self.num_tags - 1}. Got {int(tags[i, t])}."
                )
        return None if mask is None else lengths_of(mask, B, T)

    def decode(self, emissions: Tensor, mask: Tensor | None = None, k: int | None = None) -> list:
        """The best labels of each sequence, as lists; with `k` the k best, a list of lists for each."""
        emissions, _, mask = self._batch(emissions, None, mask)
        if k is None and launched_here("chain", (emissions,), None):
            from partwise.torch.cuda import chain as device_chain

            transitions, start, stop = self._scores()
            return device_chain.best_lists(emissions, self._lengths(emissions, mask), transitions, start, stop)
        if k is None:
            batch = self._quick_batch(emissions, mask) if few_labels(self.num_tags) else None
            if batch is not None:
                best, ends = chain_best(batch, emissions.shape[1])[0].tolist(), batch.lengths
            else:
                chain = self._distribution(emissions, mask)
                best, ends = chain.argmax.tolist(), chain.lengths
            return best if mask is None else [y[:n] for y, n in zip(best, ends.tolist(), strict=True)]
        chain = self._distribution(emissions, mask)
        lengths = chain.lengths.tolist()
        outputs, values = chain.topk(k)
        found = torch.isfinite(values).sum(1).tolist()
        return [[y[:n] for y in ys[:some]] for ys, n, some in zip(outputs.tolist(), lengths, found, strict=True)]

    def marginals(self, emissions: Tensor, mask: Tensor | None = None) -> Tensor:
        """The probability of each label at each token, in the shape of the emissions; zero behind the end."""
        found = self.distribution(emissions, mask).marginals[0]
        return found if self.batch_first else found.transpose(0, 1)

    def _batch(self, emissions: Tensor, tags: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Any, Tensor | None]:
        """Batch first, checked as pytorch-crf does."""
        if not isinstance(emissions, Tensor):
            raise TypeError(f"emissions must be a tensor, got {type(emissions).__name__}")
        if not torch.compiler.is_compiling():
            refuse_vmap(emissions)
        if emissions.dim() != 3:
            raise ValueError(f"emissions must have dimension of 3, got {emissions.dim()}")
        if emissions.size(2) != self.num_tags:
            raise ValueError(f"expected last dimension of emissions is {self.num_tags}, got {emissions.size(2)}")
        for name, given in (("tags", tags), ("mask", mask)):
            if given is not None and not isinstance(given, Tensor):
                raise TypeError(f"{name} must be a tensor, got {type(given).__name__}")
            if given is not None and given.device != emissions.device:
                raise ValueError(f"{name!r} is on {given.device}, but 'emissions' on {emissions.device}.")
            if given is not None and given.shape[:2] != emissions.shape[:2]:
                raise ValueError(
                    f"the first two dimensions of emissions and {name} must match, got {tuple(emissions.shape[:2])} and "
                    f"{tuple(given.shape[:2])}"
                )
        if tags is not None and (tags.is_floating_point() or tags.is_complex()):
            raise ValueError(f"tags must be integers, or sets of labels; got {tags.dtype}")
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
