"""What every structure must stand: compilers, halves, autocast, forbidden parts, few and many labels, empty batches, vmap."""

from __future__ import annotations

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from partwise.torch import CRF, Alignment, Assignment, Constituency, DependencyTree, LinearChain, SemiMarkov, reference_only
from partwise.torch import structured_loss as loss_of
from torch_cases import CASES, enumerated

LENGTHS = torch.tensor([3, 2])


def projective(arcs, *siblings):
    return DependencyTree(arcs, *siblings, lengths=LENGTHS[: len(arcs)], projective=True)


# name: how it is made of scores, and their shapes for a batch of B
MADE = {
    "chain": (lambda *s: LinearChain(*s, lengths=LENGTHS[: len(s[0])]), lambda B: ((B, 3, 2), (2, 2), (2,), (2,))),
    "steps": (lambda *s: LinearChain(*s), lambda B: ((B, 3, 2), (B, 2, 2, 2))),
    "segments": (lambda *s: SemiMarkov(*s, lengths=LENGTHS[: len(s[0])]), lambda B: ((B, 3, 2, 2), (2, 2))),
    "spanning": (lambda s: DependencyTree(s, lengths=LENGTHS[: len(s)]), lambda B: ((B, 3, 4, 2),)),
    "projective": (projective, lambda B: ((B, 3, 4),)),
    "siblings": (projective, lambda B: ((B, 3, 4), (B, 3, 4, 4))),
    "spans": (lambda s: Constituency(s, lengths=LENGTHS[: len(s)]), lambda B: ((B, 4, 4, 2),)),
    "rules": (lambda *s: Constituency(*s, lengths=LENGTHS[: len(s[0])]), lambda B: ((B, 4, 4, 2), (2, 2, 2))),
    "alignment": (lambda *s: Alignment(s[0], tuple(s[1:]), -0.5), lambda B: ((B, 2, 3), (B, 2), (B, 3))),
}


def scores_of(shapes, dtype=torch.float32, spread=1.0):
    torch.manual_seed(0)
    return [(spread * torch.randn(shape)).to(dtype).requires_grad_() for shape in shapes]


@pytest.fixture(params=MADE)
def made(request):
    return MADE[request.param]


def test_one_graph_for_the_compiler(made):
    torch._dynamo.reset()
    make, shapes = made

    target = make(*scores_of(shapes(2))).argmax

    def answers(*scores):
        found = make(*scores)
        return found.log_partition + loss_of(found, target, "softmax_margin"), found.argmax

    scores = scores_of(shapes(2))
    compiled = torch.compile(answers, fullgraph=True, backend="aot_eager")
    (one, best), (other, same) = compiled(*scores), answers(*scores)
    torch.testing.assert_close(one, other)
    assert torch.equal(best, same)
    for a, b in zip(torch.autograd.grad(one.sum(), scores), torch.autograd.grad(other.sum(), scores), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_summed_in_floats(made, dtype):
    make, shapes = made
    scores = scores_of(shapes(2), dtype, 3.0)
    found, wide = make(*scores), make(*[s.double() for s in scores])
    assert found.log_partition.dtype == torch.float32
    torch.testing.assert_close(found.log_partition.double(), wide.log_partition, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(found.max.double(), wide.max, atol=0.2, rtol=1e-2)
    assert all(g.dtype == dtype for g in torch.autograd.grad(found.log_partition.sum(), scores))


def test_sums_that_halves_cannot_hold(made):
    make, shapes = made
    scores = [torch.full(shape, 6e4, dtype=torch.float16) for shape in shapes(2)]
    found, wide = make(*scores), make(*[s.double() for s in scores])
    assert (found.log_partition > 6.5e4).all()
    torch.testing.assert_close(found.log_partition.double(), wide.log_partition, atol=1.0, rtol=1e-6)


def test_autocast(made):
    """What a layer makes in half precision goes in, with parameters in floats; sums are floats."""
    make, shapes = made
    first, *rest = scores_of(shapes(2))
    weight = torch.eye(first.shape[-1], requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        emissions = first.detach() @ weight
        assert emissions.dtype == torch.bfloat16
        found = make(emissions, *rest).log_partition
        (gradient, *others) = torch.autograd.grad(found.sum(), [weight, *rest])
    assert found.dtype == gradient.dtype == torch.float32 and all(g.dtype == torch.float32 for g in others)
    plain = make(first.detach().bfloat16().float() @ weight, *[r.bfloat16().float() for r in rest]).log_partition
    torch.testing.assert_close(found, plain, atol=0.05, rtol=0.02)


def test_autocast_of_the_layer():
    torch.manual_seed(0)
    layer, linear = CRF(4, batch_first=True), torch.nn.Linear(3, 4)
    x, tags = torch.randn(2, 5, 3), torch.randint(0, 4, (2, 5))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = layer(linear(x), tags)
        assert layer.decode(linear(x))[0]
    whole = layer(linear(x), tags)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, whole, atol=0.2, rtol=0.05)
    half.backward()
    assert all(p.grad.dtype == torch.float32 for p in (*layer.parameters(), *linear.parameters()))


@pytest.mark.parametrize("kind", CASES)
def test_forbidden_parts(kind):
    given = CASES[kind]()
    generator = torch.Generator().manual_seed(3)
    tensors = [
        torch.where(torch.rand(t.shape, generator=generator) < 0.2, -torch.inf, t).detach().requires_grad_()
        if t.is_floating_point() and t.requires_grad
        else t
        for t in given.tensors
    ]
    found = given._with(tensors)
    log_z = torch.stack([torch.logsumexp(scores, 0) for _, scores in enumerated(found)])
    torch.testing.assert_close(found.log_partition, log_z)
    torch.testing.assert_close(found.max, torch.stack([scores.max() for _, scores in enumerated(found)]))
    of = [t for t in tensors if t.requires_grad]
    value = torch.where(log_z > -torch.inf, found.log_partition, 0.0).sum()
    gradients = torch.autograd.grad(value, of, retain_graph=True)
    with reference_only():
        twin = given._with(tensors)
        others = torch.autograd.grad(torch.where(log_z > -torch.inf, twin.log_partition, 0.0).sum(), of)
    for gradient, other in zip(gradients, others, strict=True):
        assert gradient.isfinite().all()
        torch.testing.assert_close(gradient, other)


@pytest.mark.parametrize("L", [1, 300])
def test_one_label_and_many(L):
    torch.manual_seed(0)
    for made in (
        SemiMarkov(torch.randn(2, 4, 2, L), torch.randn(L, L), lengths=[4, 2]),
        DependencyTree(torch.randn(2, 4, 5, L), lengths=[4, 2]),
        DependencyTree(torch.randn(2, 4, 5, L), torch.randn(2, 4, 5, 5), lengths=[4, 2], projective=True),
    ):
        with reference_only():
            twin = made._with(made.tensors)
            wanted = twin.log_partition
        torch.testing.assert_close(made.log_partition, wanted, atol=1e-4, rtol=1e-5)
        torch.testing.assert_close(made.max, made.topk(1)[1][:, 0])


def test_empty_batches(made):
    make, shapes = made
    found = make(*scores_of(shapes(0)))
    assert found.log_partition.shape == found.max.shape == found.entropy.shape == (0,)
    assert found.argmax.shape[0] == found.sample(2).shape[0] == found.topk(2)[0].shape[0] == 0
    assert Assignment(torch.zeros(0, 2, 3)).argmax.shape == (0, 2)


def test_rows_that_are_all_masked():
    torch.manual_seed(0)
    emissions, mask = torch.randn(2, 3, 2, requires_grad=True), torch.tensor([[True] * 3, [False] * 3])
    for make in (lambda e: LinearChain(e, mask=mask), lambda e: SemiMarkov(e[:, :, None], mask=mask)):
        found = make(emissions)
        assert found.log_partition[1] == 0 == found.entropy[1] and not found.argmax[1].any()
        (gradient,) = torch.autograd.grad(loss_of(found, found.argmax, "softmax_margin"), emissions)
        assert gradient.isfinite().all() and not gradient[1].any()


@pytest.mark.parametrize("name", [*MADE, "assignment"])
def test_vmap_is_refused(name):
    make, shapes = MADE[name] if name != "assignment" else (Assignment, lambda B: ((B, 2, 3),))
    first, *rest = [s.detach() for s in scores_of(shapes(1))]
    with pytest.raises(ValueError, match=r"torch.vmap is not supported"):
        torch.vmap(lambda e: make(e[None], *rest).argmax)(torch.cat([first, first]))
