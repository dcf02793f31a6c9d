"""Dependency trees on the device: the operators `partwise::tree_sums` and `partwise::tree_best`.

Projective trees are `projective`'s, sums over all spanning trees `spanning`'s, and the best of these `branching`'s.

Labels of an arc go in as the log sum, or the maximum, of their scores; a label's marginal is its share of its arc's.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from partwise.torch.cuda import branching, projective, spanning
from partwise.torch.cuda.launch import on_device
from partwise.torch.reference import log_sum_exp


def sums(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """log Z and the marginals of arcs, with their labels."""
    (arcs,) = tensors
    _, is_projective, single_root = sizes
    dtype = torch.float64 if arcs.dtype == torch.float64 else torch.float32
    lengths = on_device(lengths, arcs.device)
    scores = arcs[..., 0] if arcs.shape[-1] == 1 else log_sum_exp(arcs.to(dtype), -1)
    if is_projective:
        log_z, found = projective.trees(scores, lengths, bool(single_root))
    else:
        log_z, found = spanning.trees(scores, lengths, bool(single_root), dtype)
    if arcs.shape[-1] == 1:
        marginals = found[..., None].to(dtype)
    else:
        some = (found > 0)[..., None]
        of_label = torch.where(some, arcs.to(dtype) - torch.where(some, scores[..., None], 0.0), -torch.inf).exp()
        marginals = found[..., None].to(dtype) * of_label
    return [log_z.to(dtype), marginals]


def best(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int], width: int) -> tuple[Tensor, Tensor]:
    """The score of the best tree of each sentence, and heads times the number of labels plus labels, (B, width)."""
    (arcs,) = tensors
    _, is_projective, single_root = sizes
    lengths = on_device(lengths, arcs.device)
    scores, labels = arcs.max(-1) if arcs.shape[-1] > 1 else (arcs[..., 0], None)
    dtype = torch.float64 if arcs.dtype == torch.float64 else torch.float32
    if is_projective:
        values, found = projective.trees(scores, lengths, bool(single_root), best=True)
        heads = found.argmax(-1)
        heads = torch.where(torch.arange(width, device=arcs.device) < lengths[:, None], heads, 0)
    else:
        values, heads = branching.best_trees(scores, lengths, bool(single_root))
    if labels is not None:
        inside = torch.arange(width, device=arcs.device) < lengths[:, None]
        heads = torch.where(inside, heads * arcs.shape[-1] + labels.gather(2, heads[..., None])[..., 0], 0)
    return values.to(dtype), heads
