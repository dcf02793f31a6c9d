"""Factor graphs in files."""

import itertools
import time

import numpy as np
import pytest

from partwise.structures.factor_graph.model import FactorGraph
from partwise.tasks.graphs.factor_files import read_factor_graphs, write_uai

pytestmark = pytest.mark.interpreted

UAI = b"""MARKOV
4
2 3 1 2
4
1 0
2 0 1
3 1 2 3
0
2
 0.4 0.6
6
 1 2 3
 4 0 6
6
 1 1
 2 5
 3 1
1
 2.0
"""
FG = b"""3
2
0.75
1.25
-0.5
OR 3 1 2 3
PAIR 2 1 2 -1.05

4
3
1.0
-2.0
0.5
-0.25
XOR 3 1 2 -3
OROUT 3 1 2 4
ATMOSTONE 2 3 4
"""


def by_hand(y):
    a, b, _, c = y
    tables = np.array([0.4, 0.6])[a] * np.array([[1, 2, 3], [4, 0, 6]])[a, b] * np.array([[1, 1], [2, 5], [3, 1]])[b, c] * 2.0
    return float(np.log(tables)) if tables else -np.inf


def test_uai():
    (stored,) = read_factor_graphs(UAI)
    every = list(itertools.product(range(2), range(3), range(1), range(2)))
    scores = np.array([by_hand(y) for y in every])
    answer = stored.graph.best("exact")
    assert tuple(stored.states(answer)) == every[int(np.argmax(scores))]
    assert answer.value + stored.constant == pytest.approx(scores.max())
    beliefs, p = stored.graph.marginals(), np.exp(scores) / np.exp(scores).sum()
    assert beliefs.log_partition + stored.constant == pytest.approx(np.log(np.exp(scores).sum()))
    for v, row in enumerate(stored.marginals(beliefs)):
        expected = [sum(q for y, q in zip(every, p, strict=True) if y[v] == s) for s in range(len(row))]
        np.testing.assert_allclose(row, expected, atol=1e-9)


def test_ad3():
    one, two = read_factor_graphs(FG)

    def first(y):
        return 0.75 * y[0] + 1.25 * y[1] - 0.5 * y[2] - 1.05 * y[0] * y[1] if any(y) else -np.inf

    def second(y):
        fine = y[0] + y[1] + (1 - y[2]) == 1 and y[3] == (y[0] or y[1]) and y[2] + y[3] <= 1
        return y[0] - 2 * y[1] + 0.5 * y[2] - 0.25 * y[3] if fine else -np.inf

    for stored, score, n in ((one, first, 3), (two, second, 4)):
        best = max(itertools.product(range(2), repeat=n), key=score)
        answer = stored.graph.best("exact")
        assert tuple(stored.states(answer)) == best and answer.value == pytest.approx(score(best))


def test_there_and_back(tmp_path):
    rng = np.random.default_rng(0)
    graph = FactorGraph()
    x, bits = graph.variables(3, states=3), graph.bits(2)
    graph.unary(x, rng.normal(size=(3, 3)))
    graph.unary(bits, rng.normal(size=2))
    graph.pairwise(x[:-1], x[1:], rng.normal(size=(2, 3, 3)))
    graph.dense([x[0], bits[1]], rng.normal(size=(3, 2)))
    write_uai(tmp_path / "g.uai", graph)
    (stored,) = read_factor_graphs(tmp_path / "g.uai")
    answer, again = graph.best(), stored.graph.best()
    assert again.value == pytest.approx(answer.value) and stored.states(again) == answer.states.tolist()
    graph.xor(bits)
    with pytest.raises(ValueError, match="xor is a hard factor"):
        write_uai(tmp_path / "h.uai", graph)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a factor graph"),
        (b"HELLO 1", "Got 'HELLO'"),
        (b"MARKOV 2 2", "the file ends where the states of variable 1 should be"),
        (b"MARKOV 1 0 0", r"expected the states of variable 0, an int in the range \[1, inf\). Got '0'"),
        (b"MARKOV 2 2 2 1 2 0 0 4 1 1 1 1", r"factor 0 is over \[0, 0\]"),
        (b"MARKOV 2 2 2 1 2 0 7 4 1 1 1 1", r"factor 0 is over \[0, 7\]"),
        (b"MARKOV 1 2 1 1 0 3 1 1 1", r"factor 0 is over variables of \[2\] states: 2 entries"),
        (b"MARKOV 1 2 1 1 0 2 1", "factor 0: the file ends after 1 of 2 numbers"),
        (b"MARKOV 1 2 1 1 0 2 1 -1", "potentials must be finite numbers >= 0. Got -1 at place 1"),
        (b"MARKOV 1 2 1 1 0 2 1 x", "factor 0: could not convert"),
        (b"MARKOV 9 99 99 99 99 99 99 99 99 99 1 9 0 1 2 3 4 5 6 7 8 1 1", "more than 100,000,000"),
        (
            b"MARKOV 2 100000000000 2 1 1 1 2 1 1",
            "the variables have 100,000,000,002 states, more than 1,000,000 and the tables have",
        ),
        ("MARKOV 1 ²".encode(), r"expected the states of variable 0, an int .* Got '²'"),
        (b"2\n1\n0.5\n0.5\n", "2 variables and 1 factors make 5 lines. Got 4"),
        (b"1\n1\n0.5\nXOR 2 1 2\n", "line 4: 'XOR 2 1 2': variables are 1 to 1"),
        (b"1\n%s\n0.5\n" % (b"9" * 400), "line 2: expected a number of variables or factors. Got '999"),
        (b"1\n1\n0.5\nXOR 1 -%s\n" % (b"9" * 400), "line 4: expected the number of a variable. Got '-99"),
        (b"1\n1\nnan\nXOR 1 1\n", "line 3: expected the score of a variable. Got 'nan'"),
        (b"2\n1\n0\n0\nPAIR 2 1 -2 3\n", "line 5: expected 'PAIR 2'"),
        (b"2\n1\n0\n0\nNAND 2 1 2\n", "line 5: expected XOR, OR, ATMOSTONE, OROUT or PAIR"),
    ],
)
def test_bad_files_are_refused_with_the_place(content, message):
    with pytest.raises(ValueError, match=message):
        read_factor_graphs(content)


def test_long_files_take_no_longer_for_each_factor():
    """Each factor asks where the states of its variables begin: that is worked out once."""
    n = 20_000
    chain = "".join(f"2 {v} {v + 1}\n" for v in range(n - 1)) + "4 1 2 3 4\n" * (n - 1)
    begin = time.process_time()
    (stored,) = read_factor_graphs(f"MARKOV\n{n}\n{'2 ' * n}\n{n - 1}\n{chain}".encode())
    assert len(stored.variables) == n and time.process_time() - begin < 10.0  # 20 to 30 before
