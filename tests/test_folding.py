"""RNA structures: oracles against enumeration, counting, extreme scores, other people's energies, bad input."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings

from oracle_cases import Enumeration, folding_cases, random_structure
from partwise import kernels, passes
from partwise.engine.compilation import interpret
from partwise.objective import best_outputs
from partwise.structures.folding.accuracy import most_accurate
from partwise.structures.folding.kernels import folding_problem, inner_of, possible_structure
from partwise.structures.folding.loops import BASES, N_ENTRIES, pair_name, tying
from partwise.structures.folding.problem import encode, memory_needed, which_pair
from partwise.tasks.folding.files import read_dot_bracket
from oracle_checks import check_features, check_oracles


def sums(problem, i, w):
    """log sum exp and part marginals, compiled."""
    theta, parts = np.full(kernels.n_parts(problem, i), 7.0), np.full(kernels.n_parts(problem, i), 7.0)
    return passes.part_pass(problem, i, w, 1.0, theta, parts), parts


@settings(max_examples=12, deadline=None)
@given(folding_cases())
def test_oracles_equal_enumeration(case):
    with interpret():  # compiling k-best takes longer than some examples
        check_oracles(*case)
        check_features(*case)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(folding_cases())
def test_compiled_oracles_equal_enumeration(case):
    check_oracles(*case)
    check_features(*case)


@pytest.mark.slow
def test_compiled_oracles_equal_interpreted_ones_where_all_kinds_of_loops_are():
    """Long enough for multi-loops, whose number of structures enumeration cannot list."""
    rng = np.random.default_rng(0)
    problem = folding_problem(["".join(rng.choice(list("ACGU"), 30))])
    for scale in (0.5, 1e4):
        w = scale * rng.normal(size=kernels.n_weights(problem))
        w[tying().number("multi-loop")] += 10 * scale
        (log_z, marginals), (found, _, values) = sums(problem, 0, w), best_outputs(problem, w)
        with interpret():
            theta, parts, y = np.zeros(len(marginals)), np.zeros(len(marginals)), np.zeros(30, np.int32)
            kernels.score(problem, 0, w, theta)
            assert kernels.best(problem, 0, theta, y) == pytest.approx(values[0], rel=1e-12)
            assert kernels.expected(problem, 0, theta, parts) == pytest.approx(log_z, rel=1e-12)
        np.testing.assert_array_equal(y, found)
        np.testing.assert_allclose(parts, marginals, atol=1e-8 if scale < 1 else 1e-5)
        assert log_z >= values[0] - 1e-6 * scale and multi_loops(y) > 0
        if scale > 1.0:  # one structure takes all
            assert log_z == pytest.approx(values[0], rel=1e-6)
        assert kernels.value_of(problem, 0, theta, y) == pytest.approx(values[0])
        assert (np.bincount(y[y >= 0], minlength=30) <= 1).all()


def multi_loops(y):
    return sum(y[i] > i and inner_of(y, i) < 0 and bool((y[i + 1 : y[i]] >= 0).any()) for i in range(len(y)))


@pytest.mark.parametrize("scale", [0.5, 1e3])
def test_what_is_forbidden_is_never_done(scale):
    """Bases that must pair and pairs that may not be: what k-best search, and restrictions, make of part scores."""
    rng = np.random.default_rng(6)
    for n in (9, 11, 13, 14):
        problem = folding_problem(["".join(rng.choice(list("ACGU"), n))], pairs=None if n < 12 else ("AU", "CG", "GU"))
        theta, parts, y = np.zeros(kernels.n_parts(problem, 0)), np.zeros(kernels.n_parts(problem, 0)), np.zeros(n, np.int32)
        for _ in range(4):
            kernels.score(problem, 0, scale * rng.normal(size=kernels.n_weights(problem)), theta)
            must, never = rng.random(n) < 0.15, rng.random(len(theta) - problem.n_tied - n) < 0.2
            theta[problem.n_tied : problem.n_tied + n] = np.where(must, -np.inf, rng.normal(size=n))
            theta[problem.n_tied + n :][never] = -np.inf
            truth = Enumeration(problem, 0, theta)
            with interpret():
                value, log_z = kernels.best(problem, 0, theta, y), kernels.expected(problem, 0, theta, parts)
            if truth.best == -np.inf:
                assert value == log_z == -np.inf
                continue
            assert value == pytest.approx(truth.best, rel=1e-12) and log_z == pytest.approx(truth.log_partition, rel=1e-12)
            marginals = np.zeros(len(theta))
            for output, p in zip(truth.outputs, truth.probabilities, strict=True):
                kernels.indicate(problem, 0, output, p, marginals)
            np.testing.assert_allclose(parts, marginals, atol=1e-9 * max(scale, 1.0))


@pytest.mark.parametrize(("scale", "alone"), [(0.5, 1), (1e3, 12)])
def test_multi_loops_equal_enumeration(scale, alone):
    """The shortest one has twelve bases, more than random cases have."""
    w = scale * np.random.default_rng(9).normal(size=tying().n_weights)
    w[[tying().number(name) for name in ("multi-loop", "multi-loop branch", "multi-loop unpaired")]] = 3 * scale
    y, _ = check_sums("GCGAAACAGUAAAC", w, 1e-9 * max(scale, 1.0), alone=[alone])
    assert multi_loops(y) and y[alone] < 0
    w[tying().number("pair CG")] = 20 * scale
    y, _ = check_sums("GGAAACGAAACGAAACC", w, 1e-9 * max(scale, 1.0), ("CG",))
    assert y[[0, 1, 6, 11]].tolist() == [16, 5, 10, 15]  # three branches


EVEN = {  # with these weights, all structures of hairpins of three and loops of two bases have the same score for each base
    r"external (unpaired|branch)|multi-loop (unpaired|branch)|(pair|stack) .*|hairpin (of at least 3|end .*|[ACGU]{3})": 1.0,
    r"bulge (of at least 1|[ACGU])": 0.5,
    r"internal (loop 1 x 1|loop [ACGU] x [ACGU]|end .*)": 0.75,
    r"multi-loop": -1.0,
}


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_sums_beyond_plain_numbers():
    """e^336: each base is charged a rate, so that plain numbers do, after all; e^-750 and scores that cancel: logarithms."""
    w, tied = 0.5 * np.random.default_rng(9).normal(size=tying().n_weights), tying()
    for pattern, value in EVEN.items():
        w[[k for k, name in enumerate(tied.names) if re.fullmatch(pattern, name)]] += 24.0 * value
    assert check_sums("GCGAAACAGUAAAC", w, 1e-9)[1] > 300.0
    for value in (25.0, -25.0):
        w[tied.number("external unpaired")] = value
        assert check_sums("A" * 30, w, 1e-9, ("CG",))[1] == pytest.approx(30 * value)
    w[:] = 0.0
    w[[tied.number("pair CG"), tied.number("external branch")]] = -800.0, 802.0
    assert check_sums("GAAAC", w, 1e-9)[1] == pytest.approx(np.log(1.0 + np.exp(2.0)))


def check_sums(sequence, w, tolerance, pairs=None, alone=()):
    """The best structure and the sum over all, against enumeration; returns the structure and log Z."""
    problem = folding_problem([sequence], pairs=pairs)
    theta, parts = np.zeros(kernels.n_parts(problem, 0)), np.zeros(kernels.n_parts(problem, 0))
    y = np.zeros(len(sequence), np.int32)
    kernels.score(problem, 0, w, theta)
    for i in alone:
        kernels.hold(problem, 0, theta, i, -1, 0)
    with interpret():
        value, log_z = kernels.best(problem, 0, theta, y), kernels.expected(problem, 0, theta, parts)
    truth, marginals = Enumeration(problem, 0, theta), np.zeros(len(theta))
    for output, p in zip(truth.outputs, truth.probabilities, strict=True):
        kernels.indicate(problem, 0, output, p, marginals)
    assert value == pytest.approx(truth.best, rel=1e-12) and log_z == pytest.approx(truth.log_partition, rel=1e-12)
    np.testing.assert_allclose(parts, marginals, atol=tolerance)
    return y, log_z


@pytest.mark.parametrize(("left", "right"), [(15, 15), (1, 29), (29, 1), (0, 30), (30, 0), (16, 15), (31, 0)])
def test_loops_have_thirty_bases_and_no_more(left, right):
    sequence = "G" + "A" * left + "GAAAC" + "A" * right + "C"
    partners, n = np.full(left + right + 7, -1, np.int32), left + right + 7
    partners[[0, n - 1, left + 1, left + 5]] = n - 1, 0, left + 5, left + 1
    problem, few = folding_problem([sequence]), left + right <= 30
    assert possible_structure(problem.bases, partners, problem.pairable)[1] == (0 if few else 1)
    w = 0.3 * np.random.default_rng(left).normal(size=kernels.n_weights(problem))
    w[tying().number("pair CG")] = 20.0
    y, _ = check_sums(sequence, w, 1e-9, ("CG",))
    if few:
        np.testing.assert_array_equal(y, partners)
        np.testing.assert_array_equal(kernels.target(folding_problem([sequence], [partners]), 0), partners)
    else:
        with pytest.raises(ValueError, match="has more than 30 unpaired bases"):
            folding_problem([sequence], [partners])


def test_the_sum_counts_structures():
    """With all weights zero and any pair allowed, exp(log Z) is the number of nested structures."""

    def count(n):  # Waterman's recursion
        numbers = [1] * (n + 1)
        for m in range(5, n + 1):
            numbers[m] = numbers[m - 1] + sum(numbers[k - 1] * numbers[m - k - 1] for k in range(1, m - 3))
        return numbers[n]

    assert [count(n) for n in (4, 5, 6, 7, 8)] == [1, 2, 4, 8, 16]
    problem = folding_problem(["A" * n for n in (0, 1, 4, 5, 10, 25)], pairs=None)
    for i, n in enumerate((0, 1, 4, 5, 10, 25)):
        log_z, _ = sums(problem, i, np.zeros(kernels.n_weights(problem)))
        assert log_z == pytest.approx(np.log(count(n)), rel=1e-12)


def test_marginals_are_differences_of_the_sum():
    """d log Z / d w, by differences, on a sequence long enough for every kind of loop."""
    rng = np.random.default_rng(1)
    problem = folding_problem(["GGGAAACCCUUUGGGAAACCCAAAGCGAAAGCUUCCC" * 2])
    w = 0.3 * rng.normal(size=kernels.n_weights(problem))
    base = np.zeros(len(w))
    kernels.add_parts(problem, 0, sums(problem, 0, w)[1], 1.0, base)
    assert (base > 1e-3).sum() > 200
    named = (
        "multi-loop",
        "multi-loop branch",
        "multi-loop unpaired",
        "external unpaired",
        "external branch",
        "bulge of at least 2",
    )
    named += ("asymmetry of at least 2", "internal loop of at least 4", "hairpin of at least 5", "internal loop 1 x 1", "bulge A")
    for k in [*map(tying().number, named), *rng.permutation(np.flatnonzero(base > 1e-4))[:6]]:
        up, down = w.copy(), w.copy()
        up[k] += 1e-4
        down[k] -= 1e-4
        slope = (sums(problem, 0, up)[0] - sums(problem, 0, down)[0]) / 2e-4
        assert slope == pytest.approx(base[k], rel=1e-5, abs=1e-7), tying().names[k]


@pytest.mark.parametrize("scale", [0.05, 1.0, 200.0])
def test_long_sequences_and_large_scores_stay_finite(scale):
    rng = np.random.default_rng(2)
    problem = folding_problem(["".join(rng.choice(list("ACGU"), 500))])
    w = scale * rng.normal(size=kernels.n_weights(problem))
    parts = passes.parts(problem, 0, w, 1.0)
    out, _, values = best_outputs(problem, w)
    pairs = np.zeros((500, 500))
    pairs[np.triu_indices(500, 1)] = parts[problem.n_tied + 500 :]
    assert np.isfinite(parts).all() and np.isfinite(values).all() and parts.min() >= 0.0
    np.testing.assert_allclose((pairs + pairs.T).sum(0) + parts[problem.n_tied : problem.n_tied + 500], 1.0, atol=1e-6)
    if scale == 200.0:  # one structure takes all
        np.testing.assert_array_equal(np.flatnonzero(out >= 0), np.flatnonzero((pairs + pairs.T).sum(0) > 0.5))


def test_every_entry_has_weights_and_every_weight_a_name():
    tied = tying()
    assert len(tied.ptr) == N_ENTRIES + 1 and len(set(tied.names)) == tied.n_weights == tied.members.max() + 1
    entries = tied.entries(np.arange(tied.n_weights, dtype=float))
    assert entries[16 + 16 * 1 + 6] == entries[16 + 16 * 9 + 4]  # AC stacked on CG is GC on CA: the same from the other end
    assert pair_name(11) == "GU" and tied.number("pair GU") == tied.number("pair GU")


HELIX = ("hairpin of at least 3", "hairpin of at least 4", "hairpin AUCA", "hairpin end CG: AA", "external branch")


@pytest.mark.parametrize(
    ("sequence", "structure", "names"),
    [
        (
            "UGAGCUACUCAAUAGGCA",
            ".(.(...).(....).).",
            [
                *("multi-loop", "multi-loop branch", "multi-loop branch", "multi-loop branch"),
                *("multi-loop unpaired", "multi-loop unpaired", "multi-loop unpaired"),
                *(
                    "multi end GC: AG",
                    "multi end CG: UA",
                    "multi end GC: GU",
                ),  # as seen from the loop: 3' neighbour first
                *("external end CG: AU", "external branch", "external unpaired", "external unpaired"),
                *("hairpin end GC: CA", "hairpin CUA", "hairpin of at least 3"),
                *("hairpin end CG: AA", "hairpin AAUA", "hairpin of at least 3", "hairpin of at least 4"),
            ],
        ),
        (
            "GACAUCAGUCU",
            "(.(....).).",
            [
                *("internal end GC: AU", "internal end GC: UA", "internal loop of at least 2", "internal loop 1 x 1"),
                *("internal loop A x U", "external end CG: UN", "external unpaired", *HELIX),
            ],
        ),
        ("GACAUCAGC", "(.(....))", ["stack GC/CG", "bulge A", "bulge of at least 1", "external end CG: NN", *HELIX]),
        ("GCAUCAGAUC", "((....)..)", ["bulge of at least 1", "bulge of at least 2", "external end CG: NN", *HELIX]),
    ],
)
def test_the_features_of_a_structure_by_name(sequence, structure, names):
    counts, problem = np.zeros(tying().n_weights), folding_problem([sequence])
    kernels.add_features(problem, 0, read_dot_bracket(structure)[0], 1.0, counts)
    found = [name for name, count in zip(tying().names, counts.astype(int), strict=True) for _ in range(count)]
    shared = ("pair", "closing", "right of", "left of")  # of what the others tell, too
    assert sorted(name for name in found if not name.startswith(shared)) == sorted(names)


def test_the_k_best_are_all_of_them_in_order():
    rng = np.random.default_rng(8)
    problem = folding_problem(["".join(rng.choice(list("ACGU"), 8))], pairs=None)
    theta, ys, values = np.zeros(kernels.n_parts(problem, 0)), np.zeros((20, 8), np.int32), np.zeros(20)
    kernels.score(problem, 0, rng.normal(size=kernels.n_weights(problem)), theta)
    truth = Enumeration(problem, 0, theta)
    with interpret():
        found = kernels.kbest(problem, 0, theta, ys, values)
    assert found == len(truth.outputs) == 16 == len({tuple(y) for y in ys[:found]})
    np.testing.assert_allclose(values[:found], np.sort(truth.values)[::-1])


def test_the_most_accurate_structure_by_enumeration():
    rng = np.random.default_rng(3)
    problem = folding_problem(["".join(rng.choice(list("ACGU"), 12))], pairs=None)
    parts = passes_of(problem, rng.normal(size=kernels.n_weights(problem)) * 0.5)
    for gamma in (0.2, 1.0, 5.0):
        y = np.zeros(12, np.int32)
        with interpret():
            value = most_accurate(parts, 12, gamma, y)
        best = max(accuracy(parts, 12, gamma, structure) for structure in kernels.outputs(problem, 0))
        assert value == pytest.approx(best) and accuracy(parts, 12, gamma, y) == pytest.approx(best)


def test_the_most_accurate_structure_has_pairs_next_to_each_other():
    parts, y = np.full(4 + 6, 0.1), np.zeros(4, np.int32)
    parts[[4, 9]] = 0.8  # the pairs of the first two and of the last two bases
    with interpret():
        assert most_accurate(parts, 4, 1.0, y) == pytest.approx(3.2)
    assert y.tolist() == [1, 0, 3, 2]


def passes_of(problem, w):
    return sums(problem, 0, w)[1][problem.n_tied :]


def accuracy(parts, n, gamma, y):
    pairs = np.zeros((n, n))
    pairs[np.triu_indices(n, 1)] = parts[n:]
    return sum(parts[i] if j < 0 else 2 * gamma * pairs[i, j] for i, j in enumerate(y) if j < 0 or j > i)


# ---------------------------------------------------------------------------------------------------------------------
# Packing
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sequence", "partners", "message"),
    [
        ("ACGU", [-1, -1, -1], "it has 4 bases, but its structure 3"),
        ("GAAAC", [4, -1, -1, -1, 3], "does not pair with it"),
        ("GAAC", [3, -1, -1, 0], "leaves 2 bases between"),
        ("GAAAG", [4, -1, -1, -1, 0], "G and G, may not pair"),
        ("GGAAACCC", [5, 6, -1, -1, -1, 0, 1, -1], "a pseudoknot"),
        ("GAAAC", [7, -1, -1, -1, 0], "numbers from 0 to 4"),
    ],
)
def test_structures_that_are_none(sequence, partners, message):
    with pytest.raises(ValueError, match=f"sequence 0: .*{message}"):
        folding_problem([sequence], [partners])


def test_letters():
    assert encode("acgutnRX").tolist() == [0, 1, 2, 3, 3, 4, 4, 4]
    with pytest.raises(ValueError, match="sequence 1, base 3: 'J' is no base"):
        folding_problem(["ACGU", "ACJU"])
    with pytest.raises(ValueError, match="such as 'GU'"):
        which_pair(["AUG"])
    with pytest.raises(ValueError, match=r"range \[0, 30\]"):
        folding_problem(["A"], max_loop=31)


def test_impossible_pairs_are_left_out():
    bases = encode("G" + "A" * 20 + "GAAAAC" + "A" * 20 + "C")
    partners = np.full(len(bases), -1)
    partners[[0, -1, 21, 26]] = len(bases) - 1, 0, 26, 21
    assert possible_structure(bases, partners, which_pair(("CG",)))[1] == 1  # the inner pair: the loop has 40 bases
    assert possible_structure(bases, partners, which_pair(("CG",)))[0][21] == -1
    assert possible_structure(bases, partners, which_pair(("AU",)))[1] == 2
    assert possible_structure(encode("GAAC"), [3, -1, -1, 0], which_pair(("CG",)))[1] == 1  # a hairpin of two bases
    assert inner_of(partners, 0) == 21 and memory_needed(2000) < 1e9


def test_taking_sequences_of_a_problem():
    rng = np.random.default_rng(4)
    sequences = ["".join(rng.choice(list("ACGU"), n)) for n in (9, 0, 12, 7)]
    problem = folding_problem(sequences, [random_structure(rng, s) for s in sequences], missed=[1, 2, 3, 4], wrong=0.5)
    taken = kernels.take(problem, np.array([2, 0]))
    assert kernels.n_examples(taken) == 2 and taken.missed.tolist() == [3, 1]
    for i, j in ((0, 2), (1, 0)):
        np.testing.assert_array_equal(kernels.target(taken, i), kernels.target(problem, j))


# ---------------------------------------------------------------------------------------------------------------------
# ViennaRNA as a referee
# ---------------------------------------------------------------------------------------------------------------------

WORDS = {"INF": float("inf"), "DEF": -50.0}  # in its parameter files
TYPES = ["CG", "GC", "GU", "UG", "AU", "UA"]  # pairs in the order of ViennaRNA's tables


def turner_weights(RNA, folder):
    """ViennaRNA's parameters as weights, in kcal / 100 with the sign turned, where they map."""
    RNA.params_save(str(folder / "rna.par"))
    tables, name = {}, ""
    for line in (folder / "rna.par").read_text().splitlines():
        if line.startswith("# "):
            name = line[2:].strip()
            tables[name] = []
        else:
            cells = line.split("/*")[0].split()
            tables.setdefault(name, []).extend(WORDS.get(cell) or float(cell) for cell in cells if cell in WORDS or number(cell))
    given, tied = RNA.param(), tying()
    w = np.zeros(tied.n_weights)

    def put(key, energy):
        w[tied.number(key)] = -energy

    for a, outer in enumerate(TYPES):
        for b, inner in enumerate(TYPES):
            (i, j), (q, p) = outer, inner  # the inner pair of a stack is read from the other side
            for key in (f"stack {i}{p}/{j}{q}", f"stack {q}{j}/{p}{i}"):
                if key in tied.names:
                    put(key, given.stack[a + 1][b + 1])
        terminal = given.TerminalAU if outer not in ("CG", "GC") else 0
        put(f"closing {outer}", terminal)
        for kind, table in (("hairpin", "mismatch_hairpin"), ("internal", "mismatch_internal")):
            energies = np.reshape(tables[table], (-1, 5, 5))[a]
            for x, right in enumerate("N" + BASES):
                for y, left in enumerate("N" + BASES):
                    put(f"{kind} end {outer}: {right}{left}", energies[x, y] - terminal)
    for kind, low, energies in (
        ("hairpin", 3, given.hairpin),
        ("bulge", 1, given.bulge),
        ("internal loop", 2, given.internal_loop),
    ):
        for k in range(low, 31):
            put(f"{kind} of at least {k}", energies[k] - (energies[k - 1] if k > low else 0))
    for k in range(1, 29):
        put(f"asymmetry of at least {k}", min(300, k * given.ninio[2]) - min(300, (k - 1) * given.ninio[2]))
    put("multi-loop", given.MLclosing)
    put("multi-loop branch", given.MLintern[1])
    put("multi-loop unpaired", given.MLbase)
    return w


def number(cell):
    return cell.lstrip("-").isdigit()


def maps(y, special):
    """Whether all loops of a structure have energies that are sums of ours; `special`: bases of hairpins with a bonus."""
    for i in range(len(y)):
        if y[i] <= i:
            continue
        p = inner_of(y, i)
        if p >= 0:
            few, many = sorted((p - i - 1, y[i] - y[p] - 1))
            if (few == 1) or (few == 2 and many in (2, 3)):
                return False
        elif not (y[i + 1 : y[i]] >= 0).any() and (y[i] - i < 5 or special(i, y[i])):
            return False
    return True


def test_vienna_energies(tmp_path):
    RNA = pytest.importorskip("RNA", reason="ViennaRNA is not installed")
    w = turner_weights(RNA, tmp_path)
    rng = np.random.default_rng(5)
    settings_, given = RNA.md(), RNA.param()
    settings_.dangles, settings_.uniq_ML = 0, 1
    bonus = (given.Tetraloops + given.Triloops + given.Hexaloops).split()
    checked = kinds = 0
    for _ in range(40):
        sequence = "".join(rng.choice(list("ACGU"), 80))
        folded = RNA.fold_compound(sequence, settings_)
        folded.pf()
        problem = folding_problem([sequence])
        theta = np.zeros(kernels.n_parts(problem, 0))
        kernels.score(problem, 0, w, theta)
        for text in {folded.pbacktrack() for _ in range(60)}:
            y = read_dot_bracket(text)[0].astype(np.int32)
            if maps(y, lambda i, j: sequence[i : j + 1] in bonus):  # noqa: B023
                checked += 1
                kinds += any(
                    y[i] > i and inner_of(y, i) < 0 and (y[i + 1 : y[i]] >= 0).any() for i in range(len(y))
                )  # multi-loops
                assert -kernels.value_of(problem, 0, theta, y) / 100 == pytest.approx(folded.eval_structure(text), abs=2e-5), text
    assert checked > 100 and kinds > 3
