"""The oracles as operators of torch: `partwise::chain_sums`, `partwise::chain_best` and so on, one set for each structure.

An operator takes the score tensors of a batch (`scores`), the lengths of its examples and the sizes of the structure. All shapes
of its answers follow from shapes of its arguments, so that ``torch.compile(fullgraph=True)`` sees one opaque node, and no example
costs a step of Python. On the CPU the compiled oracles run over the tensors' own memory, without the interpreter's lock, on
``torch.get_num_threads()`` threads. On CUDA devices kernels in Triton do (`partwise.torch.cuda`). On every other device, and for
what has no kernel, sums come from the plain-torch twins of `reference`, as inside `reference_only`, and scores are copied to the
CPU for best outputs.

`sums` answers log Z and the marginals of all parts, which are its gradient: its backward is a product. Marginals can be
differentiated too (entropies, double backward): then the covariance of parts is needed, and comes from the plain-torch twin.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import Parameter

from partwise.engine.threads import in_threads
from partwise.torch import cuda, reference
from partwise.torch.chain_ops import ChainBatch, chain_best, few_labels
from partwise.torch.sampling import sample_by_conditioning, sample_chains, sample_derivations, sample_spans
from partwise.torch.scores import (
    BinaryTreeScores,
    ChainScores,
    MatchScores,
    PairScores,
    RuleScores,
    SegmentScores,
    SiblingScores,
    StepwiseChainScores,
    TreeScores,
    bests_of_scores,
    kbests_of_scores,
    sums_of_scores,
)
from partwise.torch.shells import shell

MOST_CHUNKS = 64  # of a batch: what threads take in turn

_reference = False


@contextlib.contextmanager
def reference_only() -> Iterator[None]:
    """Run the plain-torch oracles everywhere: slow, and differentiable as often as one likes."""
    global _reference
    before, _reference = _reference, True
    try:
        yield
    finally:
        _reference = before


class Structure(NamedTuple):
    """What tells the operators of one structure from those of another."""

    name: str
    tensors: tuple[str, ...]  #: names of the score tensors
    record: type  #: of their arrays
    log_partition: Callable[..., Tensor] | None  #: the plain-torch twin: (tensors, lengths, sizes) -> log Z; None: no sums
    draw: Any  #: the loop that draws samples, where there are sums
    shared: tuple[bool, ...]  #: which tensors may have one entry for all examples in their first dimension
    packed: tuple[bool, ...]  #: which tensors have rows of all examples, and a tensor of where each begins behind them
    quick_best: Callable | None = None  #: (tensors, lengths, width) -> scores and outputs, or None for batches it does not take


def _quick_best_chains(tensors: Sequence[Tensor], lengths: Tensor, width: int) -> tuple[Tensor, Tensor] | None:
    nodes, begins, table, stop = tensors
    if table.shape[0] != 1 or stop.shape[0] != 1 or not few_labels(nodes.shape[-1]):
        return None
    batch = ChainBatch(nodes, table[0, :-1], table[0, -1], stop[0], begins, lengths)
    if not batch.is_quick:
        return None
    outputs, values = chain_best(batch, width)
    return torch.from_numpy(values), torch.from_numpy(outputs)


CHAIN = Structure(
    "chain",
    ("nodes", "begins", "transitions", "stop"),
    ChainScores,
    reference.chain_log_partition,
    sample_chains,
    (False, False, True, True),
    (True, True, False, False),
    _quick_best_chains,
)
STEPWISE_CHAIN = Structure(
    "stepwise_chain",
    (*CHAIN.tensors, "steps"),
    StepwiseChainScores,
    reference.chain_log_partition,
    sample_chains,
    (*CHAIN.shared, False),
    (*CHAIN.packed, False),
)
SEGMENTS = Structure(
    "segments",
    ("codes", "segments", "transitions", "stop"),
    SegmentScores,
    reference.segments_log_partition,
    sample_by_conditioning,
    (False, False, True, True),
    (False, False, False, False),
)
TREE = Structure("tree", ("arcs",), TreeScores, reference.tree_log_partition, sample_by_conditioning, (False,), (False,))
SIBLING_TREE = Structure(
    "sibling_tree",
    ("arcs", "siblings"),
    SiblingScores,
    reference.sibling_tree_log_partition,
    sample_by_conditioning,
    (False, False),
    (False, False),
)
ALIGNMENT = Structure(
    "alignment",
    ("match", "first", "second"),
    PairScores,
    reference.alignment_log_partition,
    sample_by_conditioning,
    (False, False, False),
    (False, False, False),
)

SPANS = Structure("spans", ("spans",), BinaryTreeScores, reference.spans_log_partition, sample_spans, (False,), (False,))
RULES = Structure(
    "rules",
    ("spans", "rules"),
    RuleScores,
    reference.rules_log_partition,
    sample_derivations,
    (False, True),
    (False, False),
)
ASSIGNMENT = Structure("assignment", ("match",), MatchScores, None, None, (False,), (False,))


class Operators(NamedTuple):
    """The operators of one structure."""

    sums: Any  #: (tensors, lengths, sizes) -> log Z (B,), marginals as tensors of the same shapes
    best: Any  #: (tensors, lengths, sizes, width) -> scores (B,), outputs (B, width)
    kbest: Any  #: (tensors, lengths, sizes, width, k) -> scores (B, k), outputs (B, k, width)
    sample: Any  #: (tensors, lengths, sizes, numbers (B, n, width)) -> outputs (B, n, width)


def _array(tensor: Tensor) -> np.ndarray:
    """The memory of a tensor on the CPU; a copy only if its type or its order is one that loops do not have."""
    tensor = tensor.detach()
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.float()
    return tensor.contiguous().numpy()


def _each(
    loop: Any, structure: Structure, tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int], *answers: Any
) -> None:
    """Run a loop over all examples of a batch, on threads."""
    problem, largest = shell(structure.name, lengths.detach().cpu().numpy(), tuple(sizes))
    record = structure.record(*map(_array, tensors))
    n = len(lengths)
    edges = np.linspace(0, n, min(MOST_CHUNKS, max(n, 1)) + 1).astype(int)
    chunks = [(int(a), int(b)) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    threads = min(torch.get_num_threads(), len(chunks))
    if threads <= 1:
        loop(problem, record, *answers, largest, 0, n)
    else:
        in_threads(lambda chunk: loop(problem, record, *answers, largest, *chunk), chunks, threads)


def _compute_type(tensors: Sequence[Tensor]) -> torch.dtype:
    return torch.float64 if tensors[0].dtype == torch.float64 else torch.float32


def compiled_here(tensors: Sequence[Tensor]) -> bool:
    """Whether compiled code runs for scores on their device."""
    return tensors[0].device.type == "cpu" and not _reference


def launched_here(name: str, tensors: Sequence[Tensor], sizes: Any) -> bool:
    """Whether there is a kernel for the sums over these scores on a CUDA device, and it is to be used."""
    return cuda.serves(name, tensors, sizes) and not _reference


def _answers(structure: Structure, tensors: Sequence[Tensor], lengths: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """Room for the marginals: as the scores, with an entry for each example where scores are shared; what is no score stays."""
    room = []
    for tensor, shared in zip(tensors, structure.shared, strict=True):
        shape = (lengths.shape[0], *tensor.shape[1:]) if shared else tensor.shape
        room.append(torch.zeros(shape, dtype=dtype, device=tensor.device) if tensor.is_floating_point() else tensor)
    return room


def _sums(structure: Structure, tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    dtype = _compute_type(tensors)
    tensors = [tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in tensors]
    log_z = torch.zeros(lengths.shape[0], dtype=dtype)
    marginals = _answers(structure, tensors, lengths, dtype)
    _each(sums_of_scores, structure, tensors, lengths, sizes, structure.record(*(m.numpy() for m in marginals)), log_z.numpy())
    return [log_z, *(m for m in marginals if m.is_floating_point())]


def _expanded(structure: Structure, tensors: Sequence[Tensor], lengths: Tensor) -> list[Tensor]:
    """Scores that examples share, once for each."""
    n = lengths.shape[0]
    return [
        tensor.expand(n, *tensor.shape[1:]) if shared else tensor
        for tensor, shared in zip(tensors, structure.shared, strict=True)
    ]


def _sums_by_reference(structure, tensors, lengths, sizes) -> tuple[Tensor, ...]:
    dtype, recorded = _compute_type(tensors), torch.is_grad_enabled()
    with torch.enable_grad():
        inputs = [t.to(dtype) if t.is_floating_point() else t for t in _expanded(structure, tensors, lengths)]
        which = _scores_of(structure, tensors)
        for k in which:
            inputs[k] = inputs[k] if inputs[k].requires_grad else inputs[k].detach().requires_grad_()
        scores = [inputs[k] for k in which]
        log_z = structure.log_partition(inputs, lengths, sizes)
        marginals = torch.autograd.grad(log_z.sum(), scores, create_graph=recorded, allow_unused=True)
    found = [torch.zeros_like(s) if m is None else m for s, m in zip(scores, marginals, strict=True)]
    return (log_z, *found) if recorded else tuple(t.detach() for t in (log_z, *found))


def sums(name: str, tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """log Z and marginals, by the operator where there is compiled code for the device, else in plain torch.

    In eager mode the same functions run as a `torch.autograd.Function`, whose calls cost less than those of operators.
    """
    if not compiled_here(tensors) and not launched_here(name, tensors, sizes):
        return _sums_by_reference(STRUCTURES[name], tensors, lengths, sizes)
    if torch.compiler.is_compiling() or not all(type(tensor) in (Tensor, Parameter) for tensor in tensors):
        return OPERATORS[name].sums(*tensors, lengths, sizes)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return EAGER[name].apply(*tensors, lengths, sizes)
    return _found(STRUCTURES[name], tensors, lengths, sizes)


def _found(structure: Structure, tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """What the operator finds, on the device of the scores."""
    if tensors[0].device.type == "cuda":
        return cuda.sums(structure.name, tensors, lengths, sizes)
    return tuple(_sums(structure, tensors, lengths, sizes))


def _eager(structure: Structure) -> Any:
    """The operator's sums as a function of autograd."""
    size = len(structure.tensors)

    def forward(*given: Any) -> tuple[Tensor, ...]:
        return _found(structure, given[:size], given[size], given[size + 1])

    setup, backward = _backward_of_sums(structure)
    shown = {"forward": forward, "setup_context": setup, "backward": backward}
    body = {name: staticmethod(function) for name, function in shown.items()}
    return type(f"{structure.name}_sums", (torch.autograd.Function,), body)


def _scores_of(structure: Structure, tensors: Sequence[Tensor]) -> list[int]:
    """Numbers of the tensors that are scores."""
    return [k for k, tensor in enumerate(tensors) if tensor.is_floating_point()]


def _per_example(
    structure: Structure, k: int, value: Tensor, like: Tensor, tensors: Sequence[Tensor], sizes: Sequence[int]
) -> Tensor:
    """One number for each example, in a shape that multiplies tensor number k."""
    if structure.packed[k]:
        _, longest, padded = sizes
        value = value.repeat_interleave(longest) if padded else value[reference.example_of_row(tensors[k + 1], like.shape[0])]
    return value.reshape(-1, *[1] * (like.dim() - 1))


def _backward_of_sums(structure: Structure) -> tuple[Callable, Callable]:
    size = len(structure.tensors)

    def setup(ctx: Any, inputs: tuple, output: tuple) -> None:
        tensors, lengths, sizes = inputs[:size], inputs[size], inputs[size + 1]
        ctx.sizes, ctx.n = sizes, len(output) - 1
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, lengths, *output[1:])

    def backward(ctx: Any, of_log_z: Tensor | None, *of_marginals: Tensor | None) -> tuple:
        saved = ctx.saved_tensors
        tensors, lengths, marginals = saved[:size], saved[size], saved[size + 1 :]
        gradients: list[Tensor | None] = [None] * size
        for k, marginal in zip(_scores_of(structure, tensors), marginals, strict=True):
            if of_log_z is not None:
                gradients[k] = _per_example(structure, k, of_log_z, marginal, tensors, ctx.sizes) * marginal
        if any(g is not None for g in of_marginals):
            for k, product in _times_covariance(structure, tensors, lengths, ctx.sizes, of_marginals):
                gradients[k] = product if gradients[k] is None else gradients[k] + product
        for k, gradient in enumerate(gradients):
            if gradient is not None:
                if structure.shared[k] and tensors[k].shape[0] == 1 and gradient.shape[0] != 1:
                    gradient = gradient.sum(0, keepdim=True)
                gradients[k] = gradient.to(tensors[k].dtype)
        return (*gradients, None, None)

    return setup, backward


def _times_covariance(structure, tensors, lengths, sizes, vectors) -> list[tuple[int, Tensor]]:
    """Cov(z) times `vectors`, by differentiating the plain-torch twin twice; differentiable again."""
    dtype = _compute_type(tensors)
    with torch.enable_grad():
        inputs = [t.to(dtype) if t.is_floating_point() else t for t in _expanded(structure, tensors, lengths)]
        which = _scores_of(structure, tensors)
        scores = [inputs[k] if inputs[k].requires_grad else inputs[k].detach().requires_grad_() for k in which]
        for k, score in zip(which, scores, strict=True):
            inputs[k] = score
        log_z = structure.log_partition(inputs, lengths, sizes).sum()
        marginals = torch.autograd.grad(log_z, scores, create_graph=True)
        pairs = [(m, v) for m, v in zip(marginals, vectors, strict=True) if v is not None]
        products = torch.autograd.grad(
            [m for m, _ in pairs],
            scores,
            [v.to(dtype) for _, v in pairs],
            create_graph=torch.is_grad_enabled(),
            allow_unused=True,
        )
    return [(k, p) for k, p in zip(which, products, strict=True) if p is not None]


def _best(structure: Structure, tensors, lengths, sizes, width: int) -> tuple[Tensor, Tensor]:
    dtype, device = _compute_type(tensors), tensors[0].device
    tensors = [t.to("cpu", dtype) if t.is_floating_point() else t.cpu() for t in tensors]
    if structure.quick_best is not None:
        found = structure.quick_best(tensors, lengths, width)
        if found is not None:
            return found[0].to(device), found[1].to(device)
    values = torch.zeros(lengths.shape[0], dtype=dtype)
    outputs = torch.zeros(lengths.shape[0], width, dtype=torch.int32)
    _each(bests_of_scores, structure, tensors, lengths, sizes, values.numpy(), outputs.numpy())
    return values.to(device), outputs.to(device, torch.int64)


def _kbest(structure: Structure, tensors, lengths, sizes, width: int, k: int) -> tuple[Tensor, Tensor]:
    dtype, device = _compute_type(tensors), tensors[0].device
    tensors = [t.to("cpu", dtype) if t.is_floating_point() else t.cpu() for t in tensors]
    values = torch.zeros(lengths.shape[0], k, dtype=dtype)
    outputs = torch.zeros(lengths.shape[0], k, width, dtype=torch.int32)
    _each(kbests_of_scores, structure, tensors, lengths, sizes, values.numpy(), outputs.numpy())
    return values.to(device), outputs.to(device, torch.int64)


def _sample(structure: Structure, tensors, lengths, sizes, numbers: Tensor) -> Tensor:
    device = tensors[0].device
    tensors = [t.to("cpu", torch.float64) if t.is_floating_point() else t.cpu() for t in tensors]
    outputs = torch.full(numbers.shape, -1, dtype=torch.int32)
    _each(structure.draw, structure, tensors, lengths, sizes, numbers.to("cpu", torch.float64).numpy(), outputs.numpy())
    return outputs.to(device, torch.int64)


def _define(structure: Structure) -> Operators:
    """Register the operators of one structure with torch."""
    tensors = ", ".join(f"Tensor {name}" for name in structure.tensors)
    arguments, size = f"{tensors}, Tensor lengths, int[] sizes", len(structure.tensors)
    found = size - sum(name == "begins" for name in structure.tensors)

    def operator(verb: str, schema: str, function: Callable) -> Any:
        return torch.library.custom_op(f"partwise::{structure.name}_{verb}", function, mutates_args=(), schema=schema)

    def sum_up(*given: Any) -> Any:
        return _found(structure, given[:size], given[size], given[size + 1])

    def best(*given: Any) -> Any:
        return _best(structure, given[:size], *given[size:])

    def kbest(*given: Any) -> Any:
        return _kbest(structure, given[:size], *given[size:])

    def sample(*given: Any) -> Any:
        return _sample(structure, given[:size], *given[size:])

    summed = structure.log_partition is not None
    operators = Operators(
        operator("sums", f"({arguments}) -> ({', '.join(['Tensor'] * (found + 1))})", sum_up) if summed else None,
        operator("best", f"({arguments}, int width) -> (Tensor, Tensor)", best),
        operator("kbest", f"({arguments}, int width, int k) -> (Tensor, Tensor)", kbest),
        operator("sample", f"({arguments}, Tensor numbers) -> Tensor", sample) if summed else None,
    )

    @operators.best.register_kernel("cuda")
    def _(*given: Any) -> Any:
        if _reference or not cuda.serves_best(structure.name, given[:size], given[size + 1]):
            return best(*given)
        return cuda.best(structure.name, given[:size], *given[size:])

    @operators.best.register_fake
    def _(*given: Any) -> Any:
        of, n = given[0], given[size].shape[0]
        return of.new_empty(n, dtype=_compute_type(given)), of.new_empty(n, given[size + 2], dtype=torch.int64)

    @operators.kbest.register_fake
    def _(*given: Any) -> Any:
        of, n, width, k = given[0], given[size].shape[0], given[size + 2], given[size + 3]
        return of.new_empty(n, k, dtype=_compute_type(given)), of.new_empty(n, k, width, dtype=torch.int64)

    if not summed:
        return operators

    @operators.sums.register_fake
    def _(*given: Any) -> Any:
        scores, lengths = given[:size], given[size]
        dtype = _compute_type(scores)
        room = [m for m in _answers(structure, scores, lengths, dtype) if m.is_floating_point()]
        return (scores[0].new_empty(lengths.shape[0], dtype=dtype), *room)

    @operators.sample.register_fake
    def _(*given: Any) -> Any:
        return torch.empty_like(given[size + 2], dtype=torch.int64)

    setup, backward = _backward_of_sums(structure)
    operators.sums.register_autograd(backward, setup_context=setup)
    return operators


STRUCTURES = {
    structure.name: structure
    for structure in (CHAIN, STEPWISE_CHAIN, SEGMENTS, TREE, SIBLING_TREE, ALIGNMENT, SPANS, RULES, ASSIGNMENT)
}
OPERATORS = {name: _define(structure) for name, structure in STRUCTURES.items()}
EAGER = {name: _eager(structure) for name, structure in STRUCTURES.items() if structure.log_partition is not None}
