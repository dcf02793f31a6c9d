"""Best spanning trees on the device, against the library's own."""

from __future__ import annotations

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("n", [3, 9])
def test_best_spanning_trees(device, single_root, n):
    from partwise.torch import operators
    from partwise.torch.cuda import branching

    torch.manual_seed(n)
    scores, lengths = torch.randn(8, n, n + 1), torch.tensor([n, 0, 1, n - 1, n, n, n, n])
    scores[0] += 3 * torch.randn(n)[:, None] * torch.randn(n + 1)  # cycles
    scores[3:5] = scores[3:5].round()  # ties
    scores[5, 1] = -torch.inf  # no tree
    scores[6, 1, 1:] = scores[6, 2, 1:] = -torch.inf  # only one with two words of the root
    scores[7].masked_fill_(torch.rand(n, n + 1) < 0.4, -torch.inf)
    values, heads = branching.best_trees(scores.to(device), lengths.to(device), single_root)
    wanted, _ = operators._best(operators.TREE, [scores.double()[..., None]], lengths, [1, 0, int(single_root)], n)
    torch.testing.assert_close(values.cpu(), wanted)
    for b, size in enumerate(lengths.tolist()):
        if values[b] > -torch.inf:
            of = heads[b, :size].cpu().long()
            above = torch.arange(1, size + 1)
            for _ in range(size):
                above = torch.where(above > 0, of[(above - 1).clamp(min=0)], 0)
            assert not above.any()
            assert not single_root or int((of == 0).sum()) == min(size, 1)
            assert float(scores[b, torch.arange(size), of].double().sum()) == pytest.approx(float(values[b]))
