"""Dependency trees on the device: the operators `partwise::tree_sums` and `partwise::tree_best`.

Projective trees are `projective`'s. Sums over all spanning trees are the determinant of the Laplacian A, and the marginal of the arc
from h to m is w(h, m) (A^-1[m, m] - A^-1[h, m]) (Koo et al. 2007): one factorisation of a batch of matrices in float64, by torch's
own linear algebra, gives both. O(n^3) time and O(n^2) memory for each sentence. The best spanning tree is found by the library's
compiled code, on the CPU.

Labels of an arc go in as the log sum, or the maximum, of their scores; a label's marginal is its share of its arc's.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from partwise.torch.cuda import projective
from partwise.torch.reference import log_sum_exp


def sums(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """log Z and the marginals of arcs, with their labels."""
    (arcs,) = tensors
    _, is_projective, single_root = sizes
    dtype = torch.float64 if arcs.dtype == torch.float64 else torch.float32
    lengths = lengths.to(arcs.device)
    scores = arcs[..., 0] if arcs.shape[-1] == 1 else log_sum_exp(arcs.to(dtype), -1)
    if is_projective:
        log_z, found = projective.trees(scores, lengths, bool(single_root))
    else:
        log_z, found = matrix_tree(scores, lengths, bool(single_root))
    if arcs.shape[-1] == 1:
        marginals = found[..., None].to(dtype)
    else:
        some = (found > 0)[..., None]
        of_label = torch.where(some, arcs.to(dtype) - torch.where(some, scores[..., None], 0.0), -torch.inf).exp()
        marginals = found[..., None].to(dtype) * of_label
    return [log_z.to(dtype), marginals]


def best(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int], width: int) -> tuple[Tensor, Tensor]:
    """The score of the best projective tree of each sentence, and heads times the number of labels plus labels, (B, width)."""
    (arcs,) = tensors
    scores, labels = arcs.max(-1)
    values, found = projective.trees(scores, lengths, bool(sizes[2]), best=True)
    heads = found.argmax(-1)
    labels = labels.gather(2, heads[..., None])[..., 0]
    inside = torch.arange(width, device=arcs.device) < lengths.to(arcs.device)[:, None]
    dtype = torch.float64 if arcs.dtype == torch.float64 else torch.float32
    return values.to(dtype), torch.where(inside, heads * arcs.shape[-1] + labels, 0)


def matrix_tree(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """log Z (B,) and marginals of arcs (B, n, n + 1), float64; each word's weights are divided by its largest one.

    Words behind the end of a sentence are words that only the root can have, with score 0.
    """
    B, n, _ = scores.shape
    device = scores.device
    if not n:
        return scores.new_zeros(B, dtype=torch.float64), scores.new_zeros(scores.shape, dtype=torch.float64)
    inside = torch.arange(n, device=device) < lengths[:, None]
    head = torch.arange(n + 1, device=device)
    forbidden = (head > lengths[:, None])[:, None, :] | (head[1:, None] == head) | ~inside[..., None]
    scores = scores.double().masked_fill(forbidden, -torch.inf)
    high = scores.amax(-1, keepdim=True)
    high = torch.where(high.isfinite(), high, 0.0)
    weights = (scores - high).exp()
    root, inner = weights[..., 0], weights[..., 1:]
    total = inner.sum(-1) + (0.0 if single_root else root)
    laplacian = torch.diag_embed(torch.where(inside, total, 1.0)) - inner  # rows: words, columns: heads
    if single_root:
        laplacian[..., 0] = torch.where(inside, root, laplacian[..., 0])
    factors, pivots, _ = torch.linalg.lu_factor_ex(laplacian)
    diagonal = factors.diagonal(dim1=1, dim2=2)
    value = diagonal.abs().log().sum(-1)
    odd = ((pivots != torch.arange(1, n + 1, device=device, dtype=pivots.dtype)).sum(-1) + (diagonal < 0).sum(-1)) % 2
    some = (diagonal != 0).all(-1) & (odd == 0)
    some = some & torch.isfinite(value)
    factors = torch.where(some[:, None, None], factors, torch.eye(n, dtype=factors.dtype, device=device))
    inverse = torch.linalg.lu_solve(factors, pivots, torch.eye(n, dtype=factors.dtype, device=device).expand(B, n, n))
    itself = inverse.diagonal(dim1=1, dim2=2)
    if single_root:  # the first column holds the root's weights
        of_root = root * inverse[:, 0]
        first = head[:n] == 0
        itself, columns = torch.where(first, 0.0, itself), inverse.mT.masked_fill(first, 0.0)
    else:
        of_root, columns = root * itself, inverse.mT
    found = torch.cat([of_root[..., None], inner * (itself[..., None] - columns)], -1)
    empty = lengths == 0
    found = torch.where(some[:, None, None] & inside[..., None], found, 0.0).clamp(min=0.0)
    value = torch.where(some, value + torch.where(inside, high[..., 0], 0.0).sum(-1), -torch.inf)
    return torch.where(empty, 0.0, value), found
