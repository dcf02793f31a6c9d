"""Packed problems from a stranger: whatever points beyond what there is, is refused before a compiled loop sees it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings

import oracle_cases
import partwise
from campaign.packed import resealed
from graph_cases import forest_cases, random_graph
from partwise.features.stored import check_stored
from partwise.files.named_arrays import apart, together
from partwise.files.packed_arrays import MANIFEST, PackedError, npy_header
from partwise.structures.factor_graph.layout import WRITTEN, WrittenLayout
from partwise.structures.factor_graph.packing import graph_problem
from partwise.structures.folding.problem import folding_problem, trouble
from partwise.structures.folding.stored import check_partners
from partwise.tasks.common.registry import BY_VERB

pytestmark = pytest.mark.interpreted
SMALL = {"parse": {"hash_bits": 6}, "constituency": {"hash_bits": 6}}
#: arrays of whole numbers that may say (nearly) anything: tags are compared with each other, hashes are hashes
FREE = {
    "constituency": {"tags", "grammar.tag", "rows.seed", "rows.cells"},
    "parse": {"rows.seed", "rows.cells"},
    "graph": {"graphs.number"},
    "segment": {"limits"},
}
MAY_BE_LONGER = ("sets", "cells", "scores", "discounts")


@pytest.fixture(autouse=True)
def interpreted():
    with partwise.interpret():
        yield


def packed(verb, folder):
    file = BY_VERB[verb].command.workload(folder)
    return partwise.pack(verb, file, folder / "corpus.packed", shard_megabytes=1e-5, **SMALL.get(verb, {}))


CASES = [name for name in dir(oracle_cases) if name.endswith("_cases")]


@pytest.mark.parametrize("name", CASES)
def test_what_was_packed_here_is_sound(name):
    @settings(max_examples=15, deadline=None)
    @given(getattr(oracle_cases, name)())
    def sound(case):
        check_stored(case[0])

    sound()


@settings(max_examples=10, deadline=None)
@given(forest_cases())
def test_graphs_that_were_packed_here_are_sound(case):
    check_stored(case[0])


def test_graphs_with_cycles_and_all_kinds_of_factors_are_sound():
    rng = np.random.default_rng(0)
    check_stored(graph_problem([random_graph(rng, True, cycles=True) for _ in range(20)]))


def tied_graphs(tmp_path):
    """Edges with weights that are shared, with either sign, and labels of two states."""
    lines = [
        {"nodes": [[1.0], [0.5], [2.0]], "edges": [[0, 1], [1, 2]], "edge_features": [[1.0, 0.5]] * 2, "labels": list("aba")},
        {"nodes": [[1.0], [0.0]], "edges": [[1, 0]], "edge_features": [[0.0, 2.0]], "labels": list("ba")},
    ]
    (tmp_path / "graphs").write_text("".join(json.dumps(line) + "\n" for line in lines))
    how = {"pairwise": "antisymmetric", "hidden": 2, "shard_megabytes": 1e-5}
    return partwise.pack("graph", tmp_path / "graphs", tmp_path / "corpus.packed", **how).problem


def test_ties_and_hidden_states_are_looked_at(tmp_path):
    problem = tied_graphs(tmp_path)
    check_stored(problem)
    assert problem.hidden == 2 and problem.ties.min() < -1 and (problem.tie >= 0).any()
    most = problem.n_weights
    for ties in (problem.ties + most, problem.ties - most, np.full_like(problem.ties, -1 - most), problem.ties[:-1]):
        with pytest.raises(ValueError, match="ties|start points beyond"):
            check_stored(problem._replace(ties=ties))
    for name, wrong in (("tie", problem.tie + 1), ("hidden", 0), ("hidden", 3), ("gold", problem.gold + 1)):
        with pytest.raises(ValueError, match="ties|hidden|gold"):
            check_stored(problem._replace(**{name: wrong}))
    kinds = np.full_like(problem.graphs.kind, WRITTEN)
    with pytest.raises(ValueError, match="written in Python"):
        check_stored(problem._replace(graphs=WrittenLayout(*problem.graphs._replace(kind=kinds))))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("verb", sorted(BY_VERB))
def test_what_points_beyond_the_arrays_is_refused(verb, tmp_path):
    problem = packed(verb, tmp_path).problem
    about, arrays = apart(problem)
    check_stored(problem)
    for name, array in arrays.items():
        if array.dtype.kind not in "iu" or not array.size or name in FREE.get(verb, ()):
            continue
        for k in (0, array.size // 2, array.size - 1):
            for wrong in (np.iinfo(array.dtype).max, np.iinfo(array.dtype).min, int(array.reshape(-1)[k]) + 1000):
                other = array.copy()
                other.reshape(-1)[k] = min(wrong, np.iinfo(array.dtype).max)
                if (other == array).all():
                    continue
                with pytest.raises(ValueError, match=r"\w"):
                    check_stored(together(about, {**arrays, name: other}))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("verb", sorted(BY_VERB))
def test_arrays_of_another_length_or_type_are_refused(verb, tmp_path):
    problem = packed(verb, tmp_path).problem
    about, arrays = apart(problem)
    for name, array in arrays.items():
        others = [array.astype(np.complex128), array[None]]
        others += [np.concatenate([array, array])] if array.size and not name.endswith(MAY_BE_LONGER) else []
        for other in others:
            with pytest.raises(ValueError, match=r"\w"):
                check_stored(together(about, {**arrays, name: other}))


def test_a_corpus_with_right_checksums_and_wrong_indices_is_refused(tmp_path):
    corpus = packed("tag", tmp_path)
    place, name = tmp_path / "corpus.packed", "main.rows.index"
    array = np.load(place / f"{name}.npy")
    array[-1] = 10**9
    (place / f"{name}.npy").write_bytes(npy_header(array.dtype, array.shape) + array.tobytes())
    manifest = json.loads((place / MANIFEST).read_text())
    (place / MANIFEST).write_text(json.dumps(resealed(place, manifest)))
    again = partwise.PackedCorpus(place)
    with pytest.raises(PackedError, match=r"damaged or was altered: ValueError: index has numbers from \d+ to 1000000000"):
        partwise.SequenceLabeler(solver="bmrm").fit(again)
    with pytest.raises(PackedError, match="index has numbers"):
        again.shard(again.n_shards - 1)
    assert corpus.n_shards > 1


def test_a_corpus_that_has_more_than_its_shards_is_refused(tmp_path):
    """Shards that lie within the arrays, each as it should be, and the whole elsewhere."""
    packed("classify", tmp_path)
    place, manifest = tmp_path / "corpus.packed", json.loads((tmp_path / "corpus.packed" / MANIFEST).read_text())
    weight = np.full(manifest["shards"][-1], -1.0)
    (place / "main.sample_weight.npy").write_bytes(npy_header(weight.dtype, weight.shape) + weight.tobytes())
    manifest["arrays"]["main.sample_weight"] = {"dtype": "<f8", "shape": [len(weight)]}
    (place / MANIFEST).write_text(json.dumps(resealed(place, manifest)))
    with pytest.raises(PackedError, match="weights of examples that cannot be"):
        partwise.PackedCorpus(place).verified()


def test_structures_of_rna_are_those_that_one_by_one_are_no_trouble():
    """Random partners, most of them wrong, and structures with a base or two changed."""
    rng, refused = np.random.default_rng(0), 0
    for _ in range(400):
        sequence = "".join(rng.choice(list("ACGU"), rng.integers(0, 14)))
        partners = oracle_cases.random_structure(rng, sequence)
        partners = np.array(partners, np.int32)
        for _ in range(rng.integers(0, 3) if len(partners) else 0):
            i, j = rng.integers(0, len(partners), 2)
            partners[i] = rng.choice([j, -1])
            if rng.random() < 0.7:
                partners[j] = i
        problem = folding_problem([sequence, "GGAAACC"])
        max_loop = int(rng.integers(0, 4))
        why = trouble(problem.bases[: len(sequence)], partners, problem.pairable, max_loop)
        both = np.concatenate([partners, [6, 5, -1, -1, -1, 1, 0]]).astype(np.int32)
        try:
            check_partners("gold", problem.bases, both, problem.starts, problem.pairable, max_loop)
            assert not why, (sequence, partners, max_loop, why)
        except ValueError:
            refused += 1
            assert why, (sequence, partners, max_loop)
    assert 50 < refused < 350


def test_what_nobody_knows_is_refused():
    rows = partwise.multiclass_problem(np.eye(2), [0, 1]).rows
    with pytest.raises(ValueError, match="nothing is known of what a Dense must be"):
        check_stored(rows)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("change", [lambda a: a.astype(np.float64), lambda a: a + 7, lambda a: a.astype(np.int32)])
def test_offsets_that_shards_are_not_asked_for_are_looked_at(change, tmp_path):
    """Shards of pairs of sequences work out how many parts they have: the whole must say the same."""
    packed("align", tmp_path)
    place = tmp_path / "corpus.packed"
    name = next(name for name in ("main.firsts", "firsts") if (place / f"{name}.npy").exists())
    array = change(np.load(place / f"{name}.npy"))
    (place / f"{name}.npy").write_bytes(npy_header(array.dtype, array.shape) + array.tobytes())
    manifest = json.loads((place / MANIFEST).read_text())
    manifest["arrays"][name]["dtype"] = array.dtype.str
    (place / MANIFEST).write_text(json.dumps(resealed(place, manifest)))
    with pytest.raises(PackedError, match="firsts"):
        partwise.PackedCorpus(place).verified()
