"""The loss of a CRF as one operator, with its gradient made on the way, and decoding: float32, on the CPU, transitions shared.

That is what nearly every training step and every prediction with a chain is; everything else goes by `operators`. The operator
answers sum_i weights[i] (log Z_i - s_i(tags)) and the gradient in each kind of score, which its backward only scales. Gradients
of the gradient come from the plain-torch twin. In eager mode the same functions run as a `torch.autograd.Function`, whose
calls cost less than those of operators.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from partwise.engine.threads import in_threads
from partwise.structures.chain.best import MANY
from partwise.torch import reference
from partwise.torch.chain_loops import BAD_TAG, FINE, chain_bests, chain_losses

WORK = 4_000_000  # products of a share of a batch, about a millisecond: what is given to a thread at a time


class ChainBatch(NamedTuple):
    """Chains that share their transitions; emissions are (tokens, L) or (B, T, L), begins and lengths are arrays."""

    emissions: Tensor
    transitions: Tensor  #: (L, L)
    start: Tensor  #: (L,)
    stop: Tensor  #: (L,)
    begins: Tensor  #: (B,) int64 row of each first token
    lengths: Tensor  #: (B,) int64

    @property
    def is_quick(self) -> bool:
        """Whether the loops here can take it."""
        return all(score.dtype == torch.float32 and score.device.type == "cpu" for score in self[:4])


@functools.lru_cache(64)
def whole_batch(B: int, T: int) -> tuple[Tensor, Tensor]:
    """Begins and lengths of B sequences of T tokens."""
    return torch.arange(B) * T, torch.full((B,), T, dtype=torch.int64)


def shares(lengths: np.ndarray, L: int) -> list[slice]:
    """Shares of a batch, which do not depend on the number of threads: so results do not, either."""
    n = max(1, min(len(lengths), int(lengths.sum()) * L * L // WORK))
    edges = np.linspace(0, len(lengths), n + 1).astype(int).tolist()
    return [slice(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True)]


def in_shares(work: Any, parts: list[slice]) -> None:
    """work(number, share) for each, on torch's threads."""
    threads = min(torch.get_num_threads(), len(parts))
    if threads <= 1:
        for k, part in enumerate(parts):
            work(k, part)
    else:
        in_threads(lambda k: work(k, parts[k]), range(len(parts)), threads)


def arrays_of(*tensors: Tensor) -> list[np.ndarray]:
    """The memory of tensors."""
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


def complain(states: np.ndarray, batch: ChainBatch, tags: np.ndarray | None = None) -> None:
    """Say what was wrong with a batch, and where."""
    for what, i, t in states.tolist():
        if what == FINE:
            continue
        L = batch.transitions.shape[-1]
        if what == BAD_TAG and tags is not None:
            raise ValueError(f"sequence {i}, token {t}: labels must be in [0, {L}). Got {int(tags[i, t])}.")
        if i < 0:
            raise ValueError(
                "'transitions', 'start' or 'stop' have NaN or +inf; scores are finite, or -inf for what is forbidden."
            )
        raise ValueError(f"sequence {i}: its emissions have NaN or +inf; scores are finite, or -inf for what is forbidden.")


def _losses(emissions, transitions, start, stop, begins, lengths, tags, weights) -> tuple[Tensor, ...]:
    L = emissions.shape[-1]
    nodes, table, first, last, begins, sizes, tags, weights = arrays_of(
        emissions, transitions, start, stop, begins, lengths, tags, weights
    )
    parts, flat = shares(sizes, L), nodes.reshape(-1, L)
    of_nodes = np.zeros_like(flat)
    of_table, of_ends = np.zeros((len(parts), L, L), np.float32), np.zeros((len(parts), 2, L), np.float32)
    losses, states = np.empty(len(sizes)), np.zeros((len(parts), 3), np.int64)

    def work(k: int, part: slice) -> None:
        chain_losses(
            flat, begins[part], sizes[part], table, first, last, tags[part], weights[part], of_nodes, of_table[k], of_ends[k, 0],
            of_ends[k, 1], losses[part], states[k],
        )  # fmt: skip

    in_shares(work, parts)
    if states.any():
        for k, part in enumerate(parts):
            states[k, 1] += part.start if states[k, 1] >= 0 else 0
        complain(states, ChainBatch(emissions, transitions, start, stop, begins, lengths), tags)
    total = np.float32(losses @ weights if np.isfinite(losses).all() else losses[weights != 0].sum())
    table, ends = of_table.sum(0) if len(parts) > 1 else of_table[0], of_ends.sum(0) if len(parts) > 1 else of_ends[0]
    return (
        torch.tensor(total),
        torch.from_numpy(of_nodes.reshape(nodes.shape)),
        torch.from_numpy(table),
        torch.from_numpy(ends[0].copy()),
        torch.from_numpy(ends[1].copy()),
    )


def _setup(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs, *output[1:])


def _backward(ctx: Any, of_total: Tensor | None, *of_gradients: Tensor | None) -> tuple:
    inputs, gradients = ctx.saved_tensors[:8], ctx.saved_tensors[8:]
    found: list[Tensor | None] = [None] * 4
    if of_total is not None:
        found = [of_total * g if needed else None for g, needed in zip(gradients, ctx.needs_input_grad, strict=False)]
    if any(g is not None for g in of_gradients):
        again = _times_covariance(inputs, of_gradients)
        found = [b if a is None else a if b is None else a + b for a, b in zip(found, again, strict=True)]
    return (*found, None, None, None, None)


def _times_covariance(inputs: tuple[Tensor, ...], vectors: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    """Second derivatives of the sum times `vectors`, by the plain-torch twin, differentiated twice; the gold score is linear."""
    emissions, transitions, start, stop, begins, lengths, tags, weights = inputs
    L, create = emissions.shape[-1], torch.is_grad_enabled()
    with torch.enable_grad():
        scores = [s if s.requires_grad else s.detach().requires_grad_() for s in (emissions, transitions, start, stop)]
        e, t, a, z = scores
        tensors = (e.reshape(-1, L), begins, torch.cat([t, a[None]])[None], z[None])
        log_z = reference.chain_log_partition(tensors, lengths, (L, tags.shape[1], 0))
        first = torch.autograd.grad((log_z * weights).sum(), scores, create_graph=True)
        pairs = [(f, v) for f, v in zip(first, vectors, strict=True) if v is not None]
        return torch.autograd.grad([f for f, _ in pairs], scores, [v for _, v in pairs], create_graph=create, allow_unused=True)


class _EagerLoss(torch.autograd.Function):
    """What the operator does, without the dispatcher."""

    forward = staticmethod(_losses)
    setup_context = staticmethod(_setup)
    backward = staticmethod(_backward)


chain_loss_operator = torch.library.custom_op(
    "partwise::chain_loss",
    _losses,
    mutates_args=(),
    schema="(Tensor emissions, Tensor transitions, Tensor start, Tensor stop, Tensor begins, Tensor lengths, Tensor tags, "
    "Tensor weights) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
chain_loss_operator.register_autograd(_backward, setup_context=_setup)


@chain_loss_operator.register_fake
def _(emissions, transitions, start, stop, begins, lengths, tags, weights) -> tuple[Tensor, ...]:
    return (
        start.new_empty(()),
        *(torch.empty_like(score, memory_format=torch.contiguous_format) for score in (emissions, transitions, start, stop)),
    )


def chain_loss(batch: ChainBatch, tags: Tensor, weights: Tensor) -> Tensor:
    """sum_i weights[i] (log Z_i - s_i(tags)), for a batch that `is_quick`; tags are (B, T) int64, (B,) weights float32."""
    call = chain_loss_operator if torch.compiler.is_compiling() else _EagerLoss.apply
    return call(*batch[:4], batch.begins, batch.lengths, tags, weights)[0]


def chain_best(batch: ChainBatch, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels (B, width) and scores (B,) of the best outputs, for a batch that `is_quick`."""
    nodes, table, first, last, begins, sizes = arrays_of(*batch)
    L = nodes.shape[-1]
    flat, outputs, values = nodes.reshape(-1, L), np.empty((len(sizes), width), np.int64), np.empty(len(sizes), np.float32)
    parts = shares(sizes, L)
    states = np.zeros((len(parts), 3), np.int64)

    def work(k: int, part: slice) -> None:
        chain_bests(flat, begins[part], sizes[part], table, first, last, outputs[part], values[part], states[k])

    in_shares(work, parts)
    if states.any():
        for k, part in enumerate(parts):
            states[k, 1] += part.start if states[k, 1] >= 0 else 0
        complain(states, batch)
    return outputs, values


def few_labels(L: int) -> bool:
    """Whether plain Viterbi is quick: with many labels the library's oracle leaves most of them out."""
    return L < MANY
