"""What all distributions promise, by enumeration, for every structure."""

from __future__ import annotations

import contextlib

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from partwise.torch import Alignment, Constituency, DependencyTree, LinearChain, reference_only
from torch_cases import CASES, alignment, chain, constituency, enumerated, rules, segments, siblings, stepwise, tree


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.mark.parametrize("spread", [1.0, 40.0])
def test_sums_are_those_over_all_outputs(case, spread):
    distribution = case(spread=spread)
    log_z = torch.stack([torch.logsumexp(scores, 0) for _, scores in enumerated(distribution)])
    torch.testing.assert_close(distribution.log_partition, log_z)
    of = [(s, m) for s, m in zip(distribution.scores, distribution._all_sums()[1:], strict=True) if s.requires_grad]
    wanted = torch.autograd.grad(log_z.sum(), [score for score, _ in of])
    for (_, marginal), gradient in zip(of, wanted, strict=True):
        if marginal.shape != gradient.shape:  # what examples share
            marginal = marginal.sum(0, keepdim=True)
        torch.testing.assert_close(marginal, gradient)


def test_the_plain_twin_says_the_same(case):
    compiled = case()
    with reference_only():
        plain = case()
        for a, b in zip(compiled._all_sums(), plain._all_sums(), strict=True):
            torch.testing.assert_close(a, b)


def test_best_and_k_best_lead_the_list_of_all(case):
    distribution = case()
    outputs, values = distribution.topk(3)
    for i, (_, scores) in enumerate(enumerated(distribution)):
        order = scores.detach().sort(descending=True).values[:3]
        torch.testing.assert_close(values[i, : len(order)], order)
        assert (values[i, len(order) :] == -torch.inf).all()
        torch.testing.assert_close(distribution.max[i].detach(), order[0])
    torch.testing.assert_close(distribution.score_of(distribution.argmax), distribution.max)
    best = distribution.argmax
    assert (outputs[:, 0] == best)[distribution._inside()].all()


def test_entropies_and_divergences(case):
    p, q = case(), case(seed=1)
    for i, ((_, a), (_, b)) in enumerate(zip(enumerated(p), enumerated(q), strict=True)):
        log_p, log_q = a.log_softmax(0), b.log_softmax(0)
        torch.testing.assert_close(p.entropy[i], -(log_p.exp() * log_p).sum())
        torch.testing.assert_close(p.cross_entropy(q)[i], -(log_p.exp() * log_q).sum())
        torch.testing.assert_close(p.kl(q)[i], (log_p.exp() * (log_p - log_q)).sum(), atol=1e-12, rtol=1e-7)
    with pytest.raises(ValueError, match="over the same outputs"):
        p.kl(chain(lengths=(2, 2)))


def test_probabilities_of_outputs_add_up(case):
    distribution = case()
    best = distribution.argmax
    total = 0.0
    for y in enumerated(distribution)[0][0]:
        batch = best.clone()
        batch[0] = y
        total += float(distribution.log_prob(batch)[0].exp())
    assert total == pytest.approx(1.0)


def test_samples_come_as_often_as_they_are_probable(case):
    distribution = case()
    drawn = distribution.sample(4000, generator=torch.Generator().manual_seed(0))
    ys, scores = enumerated(distribution)[0]
    wanted = scores.detach().softmax(0)
    length = int(distribution._inside()[0].sum())
    codes = {tuple(y[:length].tolist()): k for k, y in enumerate(ys)}
    counts = torch.zeros(len(ys))
    for y in drawn[0]:
        counts[codes[tuple(y[:length].tolist())]] += 1
    assert (counts / 4000 - wanted).abs().max() < 4 * 0.5 / 4000**0.5
    again = distribution.sample(4000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(drawn, again)


@pytest.mark.parametrize("make", [chain, stepwise, segments, tree, siblings, constituency, rules])
def test_gradients_of_first_and_second_order(make):
    given = make(lengths=(2, 1) if make is not siblings else (3, 1))

    def sums(*scores):
        return given._with(place(given, scores)).log_partition

    def entropy(*scores):
        return given._with(place(given, scores)).entropy

    scores = [s.detach().requires_grad_() for s in given.scores]
    assert torch.autograd.gradcheck(sums, scores) and torch.autograd.gradgradcheck(sums, scores)
    assert torch.autograd.gradcheck(entropy, scores)


def place(distribution, scores):
    given = iter(scores)
    return [next(given) if t.is_floating_point() else t for t in distribution.tensors]


@pytest.mark.parametrize("make", [chain, stepwise, segments, tree, siblings, constituency, rules, alignment])
def test_operators_are_what_torch_expects(make):
    from partwise.torch.operators import OPERATORS

    for dtype in (torch.float64, torch.float32):
        given = make(dtype=dtype)
        operators = OPERATORS[given.structure]
        arguments = (*given.tensors, given.lengths, given.sizes)
        plain = ("test_schema", "test_autograd_registration", "test_faketensor")
        slow = make in (alignment, siblings, rules)  # twins of many steps are traced for minutes; those of alignments look at lengths
        torch.library.opcheck(operators.sums, arguments, test_utils=plain if slow else "ALL")
        fixed = (*(t.detach() for t in given.tensors), given.lengths, given.sizes)
        torch.library.opcheck(operators.best, (*fixed, given.width))
        torch.library.opcheck(operators.kbest, (*fixed, given.width, 2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_summed_in_floats(dtype):
    given = chain(dtype=dtype)
    log_z = given.log_partition
    assert log_z.dtype == torch.float32
    wide = given._with([t.double() if t.is_floating_point() else t for t in given.tensors])
    torch.testing.assert_close(log_z.double(), wide.log_partition)
    gradient = torch.autograd.grad(log_z.sum(), given.scores)
    assert all(g.dtype == dtype for g in gradient)


def test_threads_change_nothing():
    threads = torch.get_num_threads()
    lengths = [5, 0, 3, 4, 1, 2, 5, 5]
    try:
        torch.set_num_threads(1)
        one = chain(lengths=lengths)._all_sums()
        torch.set_num_threads(2)
        for a, b in zip(one, chain(lengths=lengths)._all_sums(), strict=True):
            assert torch.equal(a, b)
    finally:
        torch.set_num_threads(threads)


def test_forbidden_outputs_have_no_part_and_no_gradient():
    emissions = torch.zeros(1, 2, 2, dtype=torch.float64).fill_(-torch.inf).requires_grad_()
    nothing = LinearChain(emissions)
    assert nothing.log_partition.item() == -torch.inf and not nothing.marginals[0].any()
    arcs = torch.zeros(1, 2, 3).fill_(-torch.inf)
    assert DependencyTree(arcs).log_partition.item() == -torch.inf


def test_one_label_and_three_hundred():
    torch.manual_seed(0)
    one = LinearChain(torch.randn(2, 4, 1, dtype=torch.float64))
    torch.testing.assert_close(one.log_partition, one.tensors[0].reshape(2, 4).sum(1))
    assert not one.argmax.any() and one.entropy.abs().max() < 1e-12
    many = LinearChain(torch.randn(2, 5, 300), torch.randn(300, 300))
    with reference_only():
        torch.testing.assert_close(many.log_partition, many._with(many.tensors).log_partition)
    torch.testing.assert_close(many.marginals[0].sum(-1), torch.ones(2, 5))
    spans = Constituency(torch.randn(1, 4, 4, 300))
    torch.testing.assert_close(spans.marginals.sum(), torch.tensor(5.0))


@pytest.mark.parametrize("view", ["strided", "expanded"])
def test_any_memory_order_of_scores(case, view):
    given = case()

    def seen(tensor):
        if not tensor.is_floating_point():
            return tensor
        if view == "strided":
            return torch.stack([tensor, tensor], -1)[..., 0]
        return tensor.detach().flatten()[:1].expand(tensor.shape) if tensor.numel() else tensor

    other = given._with([seen(t) for t in given.tensors])
    plain = given._with([seen(t).contiguous() for t in given.tensors])
    for a, b in zip(other._all_sums(), plain._all_sums(), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(other.argmax, plain.argmax)


def test_each_input_can_be_the_only_one_with_a_gradient(case):
    given = case()

    def gradients(which):
        leaves = [s.detach().requires_grad_(j in which) for j, s in enumerate(given.scores)]
        value = given._with(place(given, leaves)).log_partition.sum()
        return torch.autograd.grad(value, [leaf for leaf in leaves if leaf.requires_grad])

    every = gradients(range(len(given.scores)))
    for k, wanted in enumerate(every):
        torch.testing.assert_close(gradients([k])[0], wanted)


def test_scores_that_halves_cannot_hold_are_minus_infinity():
    big = torch.full((1, 3, 2), -7e4).half()  # beyond float16: -inf
    big[..., 0] = 6e4
    chain_of_halves = LinearChain(big)
    assert chain_of_halves.log_partition.item() == pytest.approx(3 * 60000) and chain_of_halves.argmax.tolist() == [[0, 0, 0]]


def test_two_runs_are_equal_in_deterministic_mode(case):
    torch.use_deterministic_algorithms(True)
    try:
        found = []
        for _ in range(2):
            given = case()
            of = [s for s in given.scores if s.requires_grad]
            found.append(torch.autograd.grad(given.entropy.sum(), of))
        assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    finally:
        torch.use_deterministic_algorithms(False)


def test_devices_must_agree():
    with pytest.raises(ValueError, match="'transitions' is on meta, but 'emissions' on cpu"):
        LinearChain(torch.zeros(1, 2, 3), torch.zeros(3, 3, device="meta"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearChain(torch.zeros(2, 3)), "'emissions' must be a floating-point tensor of 3 dimensions"),
        (lambda: LinearChain(torch.zeros(2, 3, 4).long()), "floating-point"),
        (lambda: LinearChain(torch.zeros(2, 3, 4), torch.zeros(3, 3)), r"'transitions' must have shape \(4, 4\)"),
        (lambda: LinearChain(torch.zeros(2, 3, 4), lengths=[3, 4]), "sequence 1: its length must be between 0 and 3"),
        (lambda: LinearChain(torch.zeros(2, 3, 4), mask=torch.tensor([[1, 0, 1], [1, 1, 1]])), "'mask', row 0"),
        (lambda: LinearChain(torch.full((1, 1, 2), torch.nan)), r"'emissions' has nan at \(0, 0, 0\)"),
        (lambda: LinearChain(torch.zeros(3, 2), cu_seqlens=[0, 2]), "'cu_seqlens' must rise from 0 to the number of tokens, 3"),
        (lambda: LinearChain(torch.zeros(1, 2, 2)).log_prob(torch.tensor([[0, 2]])), "sequence 0, token 1: labels must be in"),
        (lambda: DependencyTree(torch.zeros(1, 2, 2)), "one more head than words"),
        (lambda: DependencyTree(torch.zeros(1, 2, 3)).log_prob(torch.tensor([[0, 2]])), "sentence 0, word 2: its head"),
        (
            lambda: Alignment(torch.zeros(1, 2, 2), 0.0, 0.0).log_prob(torch.tensor([[1, 0]])),
            "pair 0, place 1: partners must rise",
        ),
        (lambda: Alignment(torch.zeros(1, 2, 2), torch.zeros(3), 0.0), "Scores of gaps"),
        (lambda: chain().topk(0), "at least 1"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_padding_may_hold_anything(case):
    """Neither sums nor gradients of any order nor best outputs look at it, nor at what is nowhere: spans that end before they begin."""
    given = case(lengths=((2, 5), (1, 2))) if case().structure == "alignment" else case(lengths=(3, 1))
    marginals, tensors = iter(given._all_sums()[1:]), []
    for k, tensor in enumerate(given.tensors):
        marginal = next(marginals) if tensor.is_floating_point() else None
        seen = marginal is None or marginal.shape != tensor.shape or (marginal > 0)
        if given.structure != "sibling_tree" and not isinstance(seen, bool):
            seen = seen.any(-1, keepdim=True)
        looked_at = isinstance(seen, bool) or (given.structure == "segments" and k == 0) or (given.structure == "alignment" and k > 0)
        tensors.append(tensor if looked_at else torch.where(seen, tensor, torch.nan).detach().requires_grad_())
    assert any(t.isnan().any() for t in tensors)
    other = given._with(tensors)
    for twin in (False, True):
        with reference_only() if twin else contextlib.nullcontext():
            fresh, clean = other._with(tensors), given._with(given.tensors)
            torch.testing.assert_close(fresh.log_partition, clean.log_partition)
            torch.testing.assert_close(fresh.entropy, clean.entropy)
            of = [t for t in tensors if t.is_floating_point() and t.requires_grad]
            found = torch.autograd.grad(fresh.entropy.sum(), of, allow_unused=True)
            assert all(g is None or g.isfinite().all() for g in found)
    assert torch.equal(given.argmax, other.argmax)


def test_empty_batches():
    assert LinearChain(torch.zeros(0, 3, 4)).log_partition.shape == (0,)
    assert DependencyTree(torch.zeros(0, 3, 4)).argmax.shape == (0, 3)
    assert LinearChain(torch.zeros(2, 0, 4)).log_partition.tolist() == [0.0, 0.0]
