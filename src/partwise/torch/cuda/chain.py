"""Linear chains on the device: what the operators of `partwise.torch.operators` run on CUDA tensors, and the fused loss.

`chain_loss`, log Z less the score of the gold labels, is an operator of its own: one launch (two, the second normally empty) and
one workspace forwards, two launches and a small sum backwards, where log Z, the gold score, its gradient and sums over the batch
would be a dozen operators of torch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from partwise.torch.cuda import chain_best, chain_chunks, chain_gradient, chain_scan, chain_wide
from partwise.torch.cuda.launch import INTERPRETED, launch, power_of_2

MOST_LABELS = 1024
FEW_LABELS = 128  # whose transitions fit into the registers of a program
LONG = 1024  # tokens from which on few sequences are cut into chunks
CHUNK = 64
FEW = 64  # sequences
PROGRAMS = 264  # two for each multiprocessor
TILE = {"BI": 64, "BJ": 128}  # of transitions that do not fit
MOST_KEPT = 64  # layouts of batches


def is_served(emissions: Tensor) -> bool:
    """Whether kernels are made for such scores: float64 and larger sets of labels are left to plain torch."""
    return emissions.shape[-1] <= MOST_LABELS and emissions.dtype != torch.float64


def _warps(L: int) -> int:
    return 4 if L > 64 else 1


def _tables(transitions: Tensor, start: Tensor, stop: Tensor) -> list[int]:
    """How far the scores of one sequence are from those of the next: 0 where all have the same."""
    return [t.stride(0) if t.dim() > d and t.shape[0] > 1 else 0 for t, d in ((transitions, 2), (start, 1), (stop, 1))]


class ScanMemory:
    """The one workspace of a batch: forward and backward states (rows, L), shifts (rows,), flags (B, 2)."""

    def __init__(self, rows: int, L: int, B: int, memory: Tensor):
        size = rows * L
        self.forward, self.backward = memory[:size], memory[size : 2 * size]
        self.shifts = memory[2 * size : 2 * size + rows]
        self.flags = memory[2 * size + rows : 2 * size + rows + 2 * B].view(torch.int32)

    @staticmethod
    def size(rows: int, L: int, B: int) -> int:
        return rows * (2 * L + 1) + 2 * B


def scan(
    emissions: Tensor,
    begins: Tensor,
    lengths: Tensor,
    transitions: Tensor,
    start: Tensor,
    stop: Tensor,
    gold: Tensor | None,
    width: int,
) -> tuple[Tensor, Tensor]:
    """log Z, less the score of the gold labels if there are any, (B,) float32; and the workspace.

    emissions (rows, L); begins, lengths (B,); transitions (L, L), start and stop (L,), or one for each sequence; gold (rows,).
    """
    rows, L = emissions.shape
    B = lengths.shape[0]
    memory = torch.empty(ScanMemory.size(rows, L, B), dtype=torch.float32, device=emissions.device)
    states = ScanMemory(rows, L, B, memory)
    out = torch.empty(B, dtype=torch.float32, device=emissions.device)
    given = (emissions, begins, lengths, transitions, start, stop)
    y = begins if gold is None else gold
    strides = _tables(transitions, start, stop)
    sizes = {"L": L, "LP": power_of_2(L)}
    if L > FEW_LABELS:
        launch(
            chain_wide.scan, (B, 2), emissions, begins, lengths, transitions, transitions.mT.contiguous(), start, stop, y,
            states.forward, states.backward, states.shifts, out, *strides, **sizes, **TILE, GOLD=gold is not None, num_warps=8,
        )  # fmt: skip
        return out, memory
    if width >= LONG and B <= FEW and L <= 32:
        _scan_chunks(given, y, gold is not None, out, states, strides, width, sizes)
        return out, memory
    late = L <= 32 or L > 64
    for again, warps in ((False, _warps(L)), (True, 2 if 32 < L <= 64 else _warps(L))):
        launch(
            chain_scan.scan, (B, 2), *given, y, states.forward, states.backward, states.shifts, out, states.flags, *strides,
            **sizes, LATE=late, AGAIN=again, GOLD=gold is not None, num_warps=warps, num_stages=3,
        )  # fmt: skip
    return out, memory


def _scan_chunks(
    given: tuple, y: Tensor, gold: bool, out: Tensor, states: ScanMemory, strides: list[int], width: int, sizes: dict
) -> None:
    emissions, begins, lengths, transitions, start, stop = given
    L, B, device = emissions.shape[1], lengths.shape[0], emissions.device
    chunks = -(-(width - 1) // CHUNK)
    matrices = torch.empty(B, chunks, L, L, dtype=torch.float32, device=device)
    flags = torch.empty(B, chunks, dtype=torch.int32, device=device)
    offsets = torch.empty(B, chunks, dtype=torch.float64, device=device)
    edges = torch.empty(2, B, chunks, L, dtype=torch.float32, device=device)
    sizes = {**sizes, "K": CHUNK}
    for again in (False, True):
        launch(
            chain_chunks.products, (B, chunks), emissions, begins, lengths, transitions, matrices, offsets, flags, chunks,
            strides[0], **sizes, AGAIN=again, PRECISION="ieee" if INTERPRETED else "tf32x3", num_warps=4 if again else 1,
        )  # fmt: skip
    launch(
        chain_chunks.link, (B, 2), *given, y, matrices, offsets, edges, out, B, chunks, *strides, **sizes, GOLD=gold, num_warps=1
    )
    launch(
        chain_chunks.fill, (B, chunks, 2), *given, edges, states.forward, states.backward, states.shifts, states.flags, B, chunks,
        *strides, **sizes, num_warps=1,
    )  # fmt: skip


def gradient(
    emissions: Tensor, begins: Tensor, lengths: Tensor, transitions: Tensor, memory: Tensor, gold: Tensor | None,
    of: Tensor | None, width: int, padded: bool, each: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Marginals (rows, L), less the gold labels, times `of` (B,); and those of the transitions, the start and the stop.

    The latter have shape (B, L + 2, L), or (1, L + 2, L), their sum, unless they are wanted for each sequence.
    """
    rows, L = emissions.shape
    B, device = lengths.shape[0], emissions.device
    states = ScanMemory(rows, L, B, memory)
    if L > FEW_LABELS:
        return _gradient_of_many(emissions, begins, lengths, transitions, states, gold, of, width, each)
    tokens = 64 if L <= 64 else 16
    tiles = max(1, -(-width // tokens))
    group = 1 if each else max(1, -(-B // PROGRAMS))
    groups = -(-B // group)
    splits = min(tiles, max(1, PROGRAMS // max(groups, 1)))
    per = -(-tiles // splits)
    splits = -(-tiles // per)
    like = emissions.dtype if of is not None else torch.float32
    found = torch.empty(rows, L, dtype=like, device=device)
    parts = torch.empty(groups, splits, L + 2, L, dtype=torch.float32, device=device)
    stride = _tables(transitions, transitions, transitions)[0]
    sizes = {"L": L, "LP": power_of_2(L), "KT": tokens, "WEIGHED": of is not None}
    g = begins if of is None else of
    warps = 8 if L > 64 else 4
    launch(
        chain_gradient.expect, (groups, splits), emissions, begins, lengths, transitions, begins if gold is None else gold, g,
        states.forward, states.backward, states.shifts, states.flags, found, parts, B, width, per, group, stride,
        **sizes, PRECISION="ieee" if INTERPRETED else "bf16x3", GOLD=gold is not None, PADDED=padded, num_warps=warps,
    )  # fmt: skip
    launch(
        chain_gradient.expect_again, (groups, splits), emissions, begins, lengths, transitions, g, states.forward,
        states.backward, states.shifts, states.flags, parts, B, per, group, stride, **sizes, num_warps=warps,
    )  # fmt: skip
    if each:
        return found, parts.sum(1) if splits > 1 else parts[:, 0]
    return found, parts.flatten(0, 1).sum(0, keepdim=True)


def _gradient_of_many(
    emissions: Tensor, begins: Tensor, lengths: Tensor, transitions: Tensor, states: ScanMemory, gold: Tensor | None,
    of: Tensor | None, width: int, each: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The same for more labels than programs have registers for."""
    rows, L = emissions.shape
    B, device = lengths.shape[0], emissions.device
    tiles = -(-L // TILE["BI"]) * -(-L // TILE["BJ"])
    group = 1 if each else max(1, B * tiles // (4 * PROGRAMS))
    groups = -(-B // group)
    splits = max(1, min(-(-width // 16), 4 * PROGRAMS // max(groups * tiles, 1)))
    per = max(1, -(-width // splits))
    found = torch.zeros(rows, L, dtype=emissions.dtype if of is not None else torch.float32, device=device)
    norms = torch.empty(rows, dtype=torch.float32, device=device)
    parts = torch.zeros(groups, splits, L + 2, L, dtype=torch.float32, device=device)
    y, g = begins if gold is None else gold, begins if of is None else of
    how = {"L": L, "GOLD": gold is not None, "WEIGHED": of is not None}
    launch(
        chain_wide.expect_labels, (B, width), emissions, begins, lengths, y, g, states.forward, states.backward, states.shifts,
        found, norms, width, **how, LP=power_of_2(L), num_warps=4,
    )  # fmt: skip
    stride = _tables(transitions, transitions, transitions)[0]
    launch(
        chain_wide.expect_pairs, (groups, splits, tiles), begins, lengths, transitions, y, g, states.forward, states.backward,
        norms, parts, B, per, group, stride, **how, **TILE, num_warps=8,
    )  # fmt: skip
    tied = parts.sum(1)
    if rows:
        some, last = (lengths > 0)[:, None], begins + (lengths - 1).clamp(min=0)
        ends = [torch.where(some, found[at.clamp(max=rows - 1)].float(), 0.0) for at in (begins, last)]
        ends = torch.stack(ends, 1)
        tied[:, L:] = (
            ends
            if group == 1
            else torch.nn.functional.pad(ends, (0, 0, 0, 0, 0, groups * group - B)).unflatten(0, (groups, group)).sum(1)
        )
    return found, tied if each else tied.sum(0, keepdim=True)


def sums(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """log Z and the marginals of all parts: the operator `partwise::chain_sums`."""
    nodes, begins, table, stop = (t.contiguous() for t in tensors)
    L, width, padded = sizes
    lengths = lengths.to(nodes.device, torch.int32)
    transitions, start = (table[0, :L], table[0, L]) if table.shape[0] == 1 else (table[:, :L], table[:, L])
    log_z, memory = scan(nodes, begins, lengths, transitions, start, stop if stop.shape[0] > 1 else stop[0], None, width)
    found, tied = gradient(nodes, begins, lengths, transitions, memory, None, None, width, bool(padded), each=True)
    return [log_z, found, tied[:, : L + 1].contiguous(), tied[:, L + 1].contiguous()]


def best(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int], width: int) -> tuple[Tensor, Tensor]:
    """Scores of the best labels, (B,), and the labels, (B, width): the operator `partwise::chain_best`."""
    nodes, begins, table, stop = (t.contiguous() for t in tensors)
    L, B = sizes[0], lengths.shape[0]
    lengths = lengths.to(nodes.device, torch.int32)
    if not is_served(nodes):
        return best_by_steps(nodes, begins, table, stop, lengths, width)
    transitions, start = (table[0, :L], table[0, L]) if table.shape[0] == 1 else (table[:, :L], table[:, L])
    stop = stop if stop.shape[0] > 1 else stop[0]
    outputs = decode(nodes, begins, lengths, transitions, start, stop, width)
    values = torch.empty(B, dtype=torch.float32, device=nodes.device)
    strides = _tables(transitions, start, stop)
    launch(chain_best.score_path, (B,), nodes, begins, lengths, transitions, start, stop, outputs, values, width, *strides, L=L)
    return values, outputs


def best_by_steps(
    nodes: Tensor, begins: Tensor, table: Tensor, stop: Tensor, lengths: Tensor, width: int
) -> tuple[Tensor, Tensor]:
    """The same in plain torch, a few operations for each token: float64, or more labels than programs have registers for."""
    L, B = nodes.shape[1], lengths.shape[0]
    dtype = torch.float64 if nodes.dtype == torch.float64 else torch.float32
    nodes, table, stop = nodes.to(dtype), table.to(dtype), stop.to(dtype)
    x, same = nodes.new_zeros(B, L), torch.arange(L, device=nodes.device).expand(B, L)
    before = []
    for t in range(width):
        inside = (t < lengths)[:, None]
        here = nodes[torch.where(inside[:, 0], begins + t, 0)]
        top, label = (x[:, :, None] + table[:, :L]).max(1) if t else (table[:, L].expand(B, L), same)
        x = torch.where(inside, top + here, x)
        before.append(torch.where(inside, label, same))
    values, y = (x + stop).max(1)
    outputs = torch.zeros(B, width, dtype=torch.int64, device=nodes.device)
    for t in range(width - 1, -1, -1):
        outputs[:, t] = torch.where(t < lengths, y, 0)
        y = before[t].gather(1, y[:, None])[:, 0]
    return torch.where(lengths > 0, values, 0.0), outputs


def decode(
    emissions: Tensor, begins: Tensor, lengths: Tensor, transitions: Tensor, start: Tensor, stop: Tensor, width: int,
    dtype: torch.dtype = torch.int64,
) -> Tensor:  # fmt: skip
    """The best labels, (B, width), zero behind the end."""
    rows, L = emissions.shape
    B, device = lengths.shape[0], emissions.device
    values = torch.empty(rows + B, L, dtype=torch.float32, device=device)
    outputs = torch.zeros(B, width, dtype=dtype, device=device)
    strides = _tables(transitions, start, stop)
    sizes = {"L": L, "LP": power_of_2(L)}
    if L > FEW_LABELS:
        launch(
            chain_wide.climb, (B,), emissions, begins, lengths, transitions, transitions.mT.contiguous(), start, stop, values,
            outputs, width, *strides, **sizes, **TILE, num_warps=8,
        )  # fmt: skip
        return outputs
    launch(
        chain_best.climb, (B, 2), emissions, begins, lengths, transitions, start, stop, values, values[rows:], *strides,
        **sizes, num_warps=_warps(L), num_stages=3,
    )  # fmt: skip
    launch(
        chain_best.descend,
        (B, 2),
        begins,
        lengths,
        transitions,
        values,
        values[rows:],
        outputs,
        width,
        strides[0],
        **sizes,
        num_warps=1,
    )
    return outputs


def best_lists(emissions: Tensor, lengths: Tensor | None, transitions: Tensor, start: Tensor, stop: Tensor) -> list[list[int]]:
    """The best labels of padded sequences (B, T, L), as lists: bytes, or pairs of them, cross to the host, once."""
    B, T, L = emissions.shape
    begins, on_device = layout(B, T, lengths, emissions.device)
    emissions, transitions, start, stop = (t.detach().contiguous() for t in (emissions, transitions, start, stop))
    small = torch.uint8 if L <= 256 else torch.int16
    labels = decode(emissions.view(B * T, L), begins, on_device, transitions, start, stop, T, small).cpu().numpy()
    ends = [T] * B if lengths is None else lengths.tolist()
    if L > 256:
        return [y[:n] for y, n in zip(labels.tolist(), ends, strict=True)]
    labels = labels.tobytes()
    return [list(labels[i * T : i * T + n]) for i, n in enumerate(ends)]


# ----------------------------------------------------------------------------------------------------------------------
# The fused loss
# ----------------------------------------------------------------------------------------------------------------------


@torch.library.custom_op("partwise::fused_chain_loss", mutates_args=())
def chain_loss(
    emissions: Tensor, transitions: Tensor, start: Tensor, stop: Tensor, gold: Tensor, begins: Tensor, lengths: Tensor, width: int
) -> tuple[Tensor, Tensor]:
    """log Z - s(gold), (B,), and the workspace that the gradient needs."""
    return scan(emissions, begins, lengths, transitions, start, stop, gold, width)


@chain_loss.register_fake
def _(emissions, transitions, start, stop, gold, begins, lengths, width):
    rows, L = emissions.shape
    size = rows * (2 * L + 1) + 2 * lengths.shape[0]
    return emissions.new_empty(lengths.shape[0], dtype=torch.float32), emissions.new_empty(size, dtype=torch.float32)


@torch.library.custom_op("partwise::fused_chain_loss_backward", mutates_args=())
def chain_loss_backward(
    of: Tensor, emissions: Tensor, transitions: Tensor, gold: Tensor, begins: Tensor, lengths: Tensor, memory: Tensor, width: int
) -> tuple[Tensor, Tensor]:
    """Gradients of the emissions, (rows, L), and of transitions, start and stop one below the other, (L + 2, L)."""
    padded = emissions.shape[0] == lengths.shape[0] * width
    found, tied = gradient(emissions, begins, lengths, transitions, memory, gold, of.contiguous(), width, padded, each=False)
    return found, tied[0]


@chain_loss_backward.register_fake
def _(of, emissions, transitions, gold, begins, lengths, memory, width):
    L = emissions.shape[1]
    return torch.empty_like(emissions), emissions.new_empty(L + 2, L, dtype=torch.float32)


@chain_loss_backward.register_autograd
def _(ctx, *_):
    raise NotImplementedError(
        "The gradient of this loss has no gradient of its own on a CUDA device: run it inside reference_only()."
    )


def _keep(ctx, inputs, output):
    emissions, transitions, start, stop, gold, begins, lengths, ctx.width = inputs
    ctx.types = [t.dtype for t in (transitions, start, stop)]
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(emissions, transitions, gold, begins, lengths, output[1])


def _differentiate(ctx, of, _):
    if of is None:
        return (None,) * 8
    emissions, transitions, gold, begins, lengths, memory = ctx.saved_tensors
    found, tied = chain_loss_backward(of, emissions, transitions, gold, begins, lengths, memory, ctx.width)
    L = emissions.shape[1]
    tables = [part.to(dtype) for part, dtype in zip((tied[:L], tied[L], tied[L + 1]), ctx.types, strict=True)]
    return (found, *tables, None, None, None, None)


chain_loss.register_autograd(_differentiate, setup_context=_keep)


def loss(emissions: Tensor, gold: Tensor, lengths: Tensor | None, transitions: Tensor, start: Tensor, stop: Tensor) -> Tensor:
    """log Z - s(gold) of padded sequences, (B,): emissions (B, T, L), gold (B, T), one table of transitions for all."""
    B, T, L = emissions.shape
    begins, lengths = layout(B, T, lengths, emissions.device)
    emissions = emissions.reshape(B * T, L).contiguous()
    return chain_loss(
        emissions,
        transitions.contiguous(),
        start.contiguous(),
        stop.contiguous(),
        gold.reshape(-1).contiguous(),
        begins,
        lengths,
        T,
    )[0]


_layouts: dict[tuple, tuple[Tensor, Tensor]] = {}


def layout(B: int, T: int, lengths: Tensor | None, device: torch.device) -> tuple[Tensor, Tensor]:
    """Where padded sequences begin, and their lengths, int32 on the device; kept for the next batch of this shape."""
    kept = None if torch.compiler.is_compiling() else _layouts.get((B, T, device))
    if kept is None:
        kept = torch.arange(B, device=device) * T, torch.full((B,), T, dtype=torch.int32, device=device)
        if not (torch.compiler.is_compiling() or (device.type == "cuda" and torch.cuda.is_current_stream_capturing())):
            if len(_layouts) > MOST_KEPT:
                _layouts.clear()
            _layouts[B, T, device] = kept
    begins, full = kept
    return begins, full if lengths is None else lengths.to(device, torch.int32)
