"""Labels that a model refuses to believe: margins, against enumeration; lists of them."""

import io

import numpy as np
import pytest
from rich.console import Console

from partwise import kernels
from partwise.tasks.common.suspects import Listed, Listing, doubts, found_among

pytestmark = pytest.mark.interpreted


def brute_doubts(problem, w, b, i):
    """Margin, token margins and what is believed of example i, by looking at every output."""
    theta = np.zeros(kernels.n_parts(problem, i))
    kernels.score(problem, i, w, theta)
    outputs = list(kernels.outputs(problem, i))
    values = np.array([kernels.value_of(problem, i, theta, y) for y in outputs])
    costs = np.array([kernels.cost(problem, i, y) for y in outputs])
    labels = np.array(outputs).reshape(len(outputs), -1)
    gold = problem.gold[problem.starts[i] : problem.starts[i + 1]]
    fits = np.ones_like(labels, bool)
    for t, g in enumerate(gold.tolist()):
        fits[:, t] = labels[:, t] == g if g < problem.n_labels else problem.known[g - problem.n_labels][labels[:, t]]
    given = values[fits.all(axis=1)].max()
    tokens = []
    for t in range(labels.shape[1]):
        others = values[~fits[:, t]]
        tokens.append(others.max() - values[fits[:, t]].max() if len(others) else -np.inf)
    labelled = np.count_nonzero(np.isfinite(tokens))
    margin = (values[costs > 0].max() - given) / np.sqrt(labelled) if labelled else -np.inf
    return margin, tokens, labels[np.argmax(values - b * costs)], fits


@pytest.mark.parametrize("b", [0.0, 1.0])
@pytest.mark.parametrize("partial", [False, True])
def test_doubts_are_those_of_enumeration(b, partial):
    from partwise.structures import chain_problem

    rng, k, lengths = np.random.default_rng(3), 3, [3, 0, 1, 4, 2, 3]
    n = sum(lengths)
    known = np.array([[True, True, True], [True, False, True]]) if partial else None
    gold = rng.integers(0, k + 2 if partial else k, n)
    problem = chain_problem(rng.normal(size=(n, 3)), lengths, gold, k, known=known)
    w = rng.normal(size=kernels.n_weights(problem))
    found = doubts(problem, w, b)
    assert found.margins[1] == -np.inf and not found.refused[1]
    for i in (i for i, length in enumerate(lengths) if length):
        here = slice(found.starts[i], found.starts[i + 1])
        margin, tokens, believed, fits = brute_doubts(problem, w, b, i)
        assert found.margins[i] == pytest.approx(margin)
        np.testing.assert_allclose(found.token_margins[here], tokens)
        np.testing.assert_array_equal(found.believed[here], believed)
        wrong = ~fits[[tuple(y) for y in kernels.outputs(problem, i)].index(tuple(believed))]
        np.testing.assert_array_equal(found.wrong[here], wrong)
        assert found.refused[i] == wrong.any()


def test_lists_of_suspects():
    rows = [Listed((i, 10 * i, 3.0 - i, "a\tb", "X", "[Y]"), lambda i=i: {"example": i}) for i in range(3)]
    titles = ("example", "line", "margin", "text", "given", "believed")
    truth = found_among(np.array([True, False, True]), np.array([True, True, False]), np.array([3.0, 2.0, 1.0]))
    assert truth == {"wrong": 2, "found": 1, "precision": 0.5, "recall": 0.5, "average_precision": pytest.approx(5 / 6)}
    listing = Listing(titles, rows, (7, "rows"), {"loss": "ramp", "folds": 5}, "in context", truth)
    first, second = listing.in_words()
    assert first == "3 of 7 rows are not believed (judged in 5 parts by models of the others, loss ramp)"
    assert second == "2 are wrong, 1 of them found: precision 50.00 %, recall 50.00 %, average precision 83.33 %"
    assert listing.as_text(1).decode() == "\t".join(titles) + "\n0\t0\t3\ta b\tX\t[Y]\n"
    assert Listing(titles, [], (7, "rows"), {}).as_text().decode() == "\t".join(titles) + "\n"
    where = io.StringIO()
    Console(file=where, width=80).print(listing.table(2))
    lines = [line.split() for line in where.getvalue().splitlines() if line.strip()]
    assert lines[0] == ["line", "margin", "given", "believed", "in", "context"]
    assert lines[-2:] == [["0", "3.00", "X", "[Y]", "a", "b"], ["10", "2.00", "X", "[Y]", "a", "b"]]
