"""Which weights the loops of a structure have, by name, and by other people's energies (ViennaRNA)."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels
from partwise.structures import folding_problem
from partwise.structures.folding.loops import BASES, N_ENTRIES, pair_name, tying
from partwise.structures.folding.problem import inner_of
from partwise.tasks.folding.files import read_dot_bracket


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
