"""Rules of grammars, hidden Markov models, siblings and trees without directions: what they mean, what is refused."""

from __future__ import annotations

import itertools
import math

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed: make test-torch")
import torch

from partwise.torch import Constituency, DependencyTree, LinearChain, structured_loss


def probabilities(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.float64) + 0.1


def pcfg(S=2, P=2, V=2, seed=0):
    """Log probabilities of the first symbol, of rules and of words."""
    rules = probabilities(S, S + P, S + P, seed=seed)
    rules[0, 0, 0] = 0.0
    roots, words = probabilities(S, seed=seed + 1), probabilities(P, V, seed=seed + 2)
    rules = rules / rules.sum((1, 2), keepdim=True)
    return (roots / roots.sum()).log(), rules.log(), (words / words.sum(1, keepdim=True)).log()


def test_a_grammar_says_how_probable_a_sentence_is():
    roots, rules, words = pcfg()

    def inside(sentence, label):
        """By the definition."""
        if len(sentence) == 1:
            return float(words[label - 2, sentence[0]].exp()) if label >= 2 else 0.0
        if label >= 2:
            return 0.0
        return sum(
            float(rules[label, b, c].exp()) * inside(sentence[:k], b) * inside(sentence[k:], c)
            for k in range(1, len(sentence))
            for b, c in itertools.product(range(4), repeat=2)
        )

    sentences = list(itertools.product(range(2), repeat=3))
    wanted = [sum(float(roots[a].exp()) * inside(s, a) for a in range(2)) for s in sentences]
    tree = Constituency.of_grammar(words.T[torch.tensor(sentences)], rules, roots)
    torch.testing.assert_close(tree.log_partition.exp(), torch.tensor(wanted, dtype=torch.float64))
    spans, uses = tree.marginals
    assert spans[..., 2:].sum() == pytest.approx(3 * len(sentences)) and uses.sum() == pytest.approx(2 * len(sentences))
    assert not uses[:, 0, 0, 0].any()  # a rule that there is not
    begins, ends, labels = tree.spans_of(tree.argmax)
    assert ((labels >= 2) == (ends - begins == 1)).all()
    short = Constituency.of_grammar(words.T[torch.zeros(2, 3, dtype=torch.int64)], rules, roots, lengths=[2, 1])
    assert short.log_partition[1] == -torch.inf and short.log_partition[0].isfinite()


def test_a_grammar_learns_and_samples_what_it_says():
    roots, rules, words = pcfg(seed=3)
    rules = rules.requires_grad_()
    tree = Constituency.of_grammar(words.T[torch.tensor([[0, 1, 1, 0]])], rules, roots)
    (gradient,) = torch.autograd.grad(tree.log_partition.sum(), rules, retain_graph=True)
    torch.testing.assert_close(gradient, tree.marginals[1][0].detach())
    drawn = tree.sample(3000, torch.Generator().manual_seed(0))[0]
    begins, ends, labels = tree.spans_of(drawn)
    found = torch.zeros(5, 5, 4, dtype=torch.float64).index_put(
        (begins.flatten(), ends.flatten(), labels.flatten()), torch.tensor(1.0, dtype=torch.float64), accumulate=True
    )
    assert (found / 3000 - tree.marginals[0][0]).abs().max() < 4 * 0.5 / 3000**0.5
    target = tree.argmax
    for loss in ("crf", "hinge", "softmax_margin", "ramp"):
        (gradient,) = torch.autograd.grad(structured_loss(tree, target, loss), rules, retain_graph=True)
        assert gradient.isfinite().all()


def test_each_sentence_may_have_rules_of_its_own():
    torch.manual_seed(0)
    spans, rules = torch.randn(2, 4, 4, 2), torch.randn(2, 2, 2, 2)
    both = Constituency(spans, rules)
    for i in range(2):
        alone = Constituency(spans[i : i + 1], rules[i])
        torch.testing.assert_close(both.log_partition[i], alone.log_partition[0])
        torch.testing.assert_close(both.marginals[1][i], alone.marginals[1][0])
        assert torch.equal(both.argmax[i], alone.argmax[0])
    roots = torch.tensor([0.5, -torch.inf])
    rooted = Constituency(spans, rules, roots)
    assert (rooted.spans_of(rooted.argmax)[2][:, 0] == 0).all()  # pre-order: the whole comes first
    torch.testing.assert_close(rooted.max, rooted.score_of(rooted.argmax.flip(1)))  # in any order


def test_hidden_markov_models_by_enumeration():
    torch.manual_seed(0)
    initial, transitions, emissions = (
        torch.randn(*shape, dtype=torch.float64).log_softmax(-1) for shape in ((2,), (2, 2), (2, 3))
    )
    observed = torch.tensor([[0, 2, 1], [1, 1, 0]])
    model = LinearChain.hmm(observed, initial, transitions, emissions, lengths=[3, 2])
    for i, n in enumerate((3, 2)):
        total = 0.0
        for states in itertools.product(range(2), repeat=n):
            p = initial[states[0]] + sum(transitions[a, b] for a, b in itertools.pairwise(states))
            total += math.exp(p + sum(emissions[s, observed[i, t]] for t, s in enumerate(states)))
        assert float(model.log_partition[i].exp()) == pytest.approx(total)
    everything = torch.tensor(list(itertools.product(range(3), repeat=3)))
    assert float(LinearChain.hmm(everything, initial, transitions, emissions).log_partition.exp().sum()) == pytest.approx(1.0)


def test_trees_without_directions():
    """Of four nodes there are 16, and symmetric weights make each as probable as the product of its edges."""
    torch.manual_seed(0)
    scores = torch.randn(1, 4, 4, dtype=torch.float64)
    scores = scores + scores.mT
    tree = DependencyTree(scores[:, 1:], single_root=False)
    edges = list(itertools.combinations(range(4), 2))
    spanning = []
    for some in itertools.combinations(edges, 3):
        reached = {0}
        for _ in range(3):
            reached |= {b for a, b in some if a in reached} | {a for a, b in some if b in reached}
        if len(reached) == 4:
            spanning.append(some)
    assert len(spanning) == 16
    totals = torch.stack([sum(scores[0, a, b] for a, b in some) for some in spanning])
    torch.testing.assert_close(tree.log_partition[0], torch.logsumexp(totals, 0))
    assert float(tree.max) == pytest.approx(float(totals.max()))
    found = torch.cat([torch.zeros(1, 1, 4, dtype=torch.float64), tree.marginals], 1)
    found = (found + found.mT)[0]
    for a, b in edges:
        wanted = totals.softmax(0)[[k for k, some in enumerate(spanning) if (a, b) in some]].sum()
        assert float(found[a, b]) == pytest.approx(float(wanted))


def test_siblings_lead_to_other_trees():
    arcs, siblings = torch.zeros(1, 3, 4), torch.zeros(1, 3, 4, 4)
    siblings[0, 2, 1, 2] = 5.0  # the third word below the first, behind the second
    tree = DependencyTree(arcs, siblings, projective=True)
    assert tree.argmax.tolist() == [[0, 1, 1]] and float(tree.max) == 5.0
    of_arcs, of_siblings = tree.marginals
    torch.testing.assert_close(of_siblings.sum(-1), of_arcs)
    assert float(of_siblings[0, 2, 1, 2]) == pytest.approx(math.exp(5) / (math.exp(5) + 6))


def test_siblings_end_to_end():
    torch.manual_seed(0)
    lengths, ends = torch.tensor([3, 0, 4]), torch.tensor([0, 3, 3, 7])
    inside = torch.arange(4) < lengths[:, None]
    arcs, siblings = torch.randn(3, 4, 5), torch.randn(3, 4, 5, 5)
    padded = DependencyTree(arcs, siblings, lengths=lengths, projective=True)
    packed = DependencyTree(arcs[inside], siblings[inside], cu_seqlens=ends, projective=True)
    torch.testing.assert_close(packed.log_partition, padded.log_partition)
    for one, other in zip(packed.marginals, padded.marginals, strict=True):
        torch.testing.assert_close(one, other[inside])
    structured_loss(packed, packed.argmax[inside], "hinge")


@pytest.mark.parametrize("make", ["siblings", "rules"])
def test_one_graph_for_the_compiler(make):
    torch._dynamo.reset()

    def loss(first, second, target):
        if make == "rules":
            return structured_loss(Constituency(first, second), target, "crf")
        return structured_loss(DependencyTree(first, second, projective=True), target, "crf")

    torch.manual_seed(0)
    if make == "rules":
        first, second, target = torch.randn(1, 4, 4, 2), torch.randn(1, 2, 2), torch.tensor([[6, 2, 5, 1, 10]])
    else:
        first, second, target = torch.randn(1, 3, 4), torch.randn(1, 3, 4, 4), torch.tensor([[0, 1, 1]])
    given = [first.requires_grad_(), second.requires_grad_()]
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*given, target), loss(*given, target))
    for a, b in zip(
        torch.autograd.grad(compiled(*given, target), given), torch.autograd.grad(loss(*given, target), given), strict=True
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DependencyTree(torch.zeros(1, 2, 3), torch.zeros(1, 2, 3, 3)), "say projective=True"),
        (lambda: DependencyTree(torch.zeros(1, 2, 3), torch.zeros(1, 2, 3, 2), projective=True), r"shape \(1, 2, 3, 3\)"),
        (
            lambda: DependencyTree(torch.zeros(1, 2, 3), torch.full((1, 2, 3, 3), torch.nan), projective=True),
            "'siblings' has nan",
        ),
        (lambda: Constituency(torch.zeros(1, 3, 3, 2), torch.zeros(3, 2, 2)), r"'rules' must have shape \(S, 2, 2\)"),
        (lambda: Constituency(torch.zeros(1, 3, 3, 2), torch.zeros(2, 2)), "'rules' must be a floating-point tensor of 4"),
        (lambda: Constituency(torch.zeros(1, 3, 3, 2), roots=torch.zeros(3)), r"'roots' must have shape \(2,\)"),
        (lambda: Constituency(torch.zeros(1, 3, 3), torch.full((1, 1, 1), torch.inf)), "'rules' has inf"),
        (lambda: Constituency.of_grammar(torch.zeros(1, 3, 2), torch.zeros(1, 2, 2)), r"of S symbols and 2 tags"),
        (lambda: Constituency.of_grammar(torch.zeros(1, 3, 1), torch.zeros(1, 2, 2), torch.zeros(2)), r"'roots' must have"),
        (
            lambda: LinearChain.hmm(torch.tensor([[0, 3]]), *map(torch.zeros, ((2,), (2, 2), (2, 3)))),
            "sequence 0, token 1: symbols",
        ),
        (
            lambda: LinearChain.hmm(torch.zeros(1, 2), *map(torch.zeros, ((2,), (2, 2), (2, 3)))),
            "'observed' must be integers. Got torch.float32",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_one_word_spans_have_no_rule():
    tree = Constituency(torch.zeros(1, 3, 3, 2), torch.zeros(1, 2, 2))
    target = tree.codes_of(torch.tensor([[0, 0, 1]]), torch.tensor([[2, 1, 2]]), torch.tensor([[1, 0, 0]]))
    assert tree.score_of(target).item() == -torch.inf  # label 1 has no rules
    assert structured_loss(tree, target, "crf").item() == torch.inf
