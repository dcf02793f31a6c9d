"""Every task of the registry, packed on disk: the same model as from memory, however shards are cut; and what is refused."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import partwise
from partwise import kernels
from partwise.cli.app import app
from partwise.files.named_arrays import apart
from partwise.files.packed_arrays import PackedError, PackedWriter, checksum
from partwise.tasks.common.registry import BY_VERB

pytestmark = pytest.mark.interpreted
SMALL = {"parse": {"hash_bits": 8}, "constituency": {"hash_bits": 8}}  # what keeps a run in the interpreter short
ONE = 1e-5  # megabytes: as many shards as there are examples
BATCH = [("lbfgs", "crf"), ("lbfgs", "soft_ramp"), ("owlqn", "crf"), ("bmrm", "hinge"), ("bmrm", "ramp"), ("bmrm_ls", "crf")]
BATCH += [
    ("ocas", "hinge"),
    ("oneslack", "hinge"),
    ("proximal", "crf"),
    ("nrbm", "hinge"),
    ("polyak", "hinge"),
    ("kelley", "hinge"),
]


@pytest.fixture(autouse=True)
def interpreted(request):
    with contextlib.nullcontext() if request.node.get_closest_marker("slow") else partwise.interpret():
        yield


def workload(verb, folder):
    """The same file, of the same age, for every call."""
    found = list((folder / verb).iterdir()) if (folder / verb).exists() else []
    (folder / verb).mkdir(exist_ok=True)
    return found[0] if found else BY_VERB[verb].command.workload(folder / verb)


def packed(verb, folder, megabytes=ONE, name="corpus.packed", **options):
    file = workload(verb, folder)
    return partwise.pack(verb, file, folder / name, shard_megabytes=megabytes, **SMALL.get(verb, {}), **options)


def from_memory(verb, folder, **parameters):
    task = BY_VERB[verb]
    file = str(workload(verb, folder))
    training = task.command.start(file, None, task.command.options(), lambda **more: task.core(**more, **parameters))
    training.fit(checkpoint=None)
    return training.estimator


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("verb", sorted(BY_VERB))
def test_batch_solvers_learn_the_same_from_disk_however_it_was_cut(verb, tmp_path):
    how = {"solver": "bmrm", "max_epochs": 2, **SMALL.get(verb, {})}
    corpus = packed(verb, tmp_path)
    again = packed(verb, tmp_path, 100.0, "one.packed")
    assert corpus.n_shards > again.n_shards == 1
    expected = from_memory(verb, tmp_path, **how).weights_
    for some in (corpus, again):
        model = BY_VERB[verb].core(**how).fit(partwise.PackedCorpus(some.path))
        assert model.weights_.tobytes() == expected.tobytes()
    model.save(tmp_path / "model")
    assert partwise.load(tmp_path / "model").weights_.tobytes() == expected.tobytes()


def how_to(solver, loss, epochs):
    """Parameters of a run."""
    return {"solver": solver, "loss": loss, "l1_ratio": 0.5 if solver == "owlqn" else 0.0, "max_epochs": epochs, "tol": 1e-9}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("solver", "loss"), BATCH)
def test_every_batch_solver_learns_the_same_from_disk(solver, loss, tmp_path):
    how, found = how_to(solver, loss, 3), set()
    for megabytes in (ONE, 100.0):
        corpus = packed("tag", tmp_path, megabytes, f"{megabytes}.packed")
        found.add(BY_VERB["tag"].core(**how).fit(partwise.PackedCorpus(corpus.path)).weights_.tobytes())
    assert found == {from_memory("tag", tmp_path, **how).weights_.tobytes()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("solver", "loss"), BATCH)
def test_every_batch_solver_learns_the_same_from_more_data(solver, loss, tmp_path):
    """300 sentences in up to 90 shards, compiled; Kelley's linear programs have no room for that many features."""
    if solver == "kelley":
        pytest.skip("the short test has it")
    (tmp_path / "tag").mkdir()
    rng = np.random.default_rng(0)
    sentences = [[f"w{w} {'ABCD'[w % 4]}" for w in rng.integers(0, 300, rng.integers(0, 30) + 1)] for _ in range(300)]
    (tmp_path / "tag" / "sentences.txt").write_text("\n\n".join("\n".join(one) for one in sentences))
    how = how_to(solver, loss, 6)
    expected = from_memory("tag", tmp_path, **how).weights_
    assert np.count_nonzero(expected) > 300
    for megabytes in (100.0, 0.05, 0.005):
        corpus = packed("tag", tmp_path, megabytes, f"{megabytes}.packed")
        assert corpus.n_shards > 60 or megabytes > 0.005
        found = BY_VERB["tag"].core(**how).fit(partwise.PackedCorpus(corpus.path))
        assert found.weights_.tobytes() == expected.tobytes(), megabytes


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("verb", sorted(BY_VERB))
def test_what_points_into_other_arrays_has_64_bits(verb, tmp_path):
    """Offsets of tokens, parts and rows: 2^31 of any of them are no limit. Features and labels are numbered by 32 bits."""
    corpus = packed(verb, tmp_path)
    n = len(corpus)
    none = apart(kernels.take(corpus.problem, slice(0, 0)))[1]
    own = {name: array for name, array in apart(corpus.problem)[1].items() if array is not none[name]}
    assert own  # what grows with the data; the rest are tables, of templates say, that all examples share
    for name, array in own.items():
        counts = array.ndim == 1 and array.dtype.kind in "iu" and array.size > 1 and array[0] == 0 and (np.diff(array) >= 0).all()
        if counts and (name.endswith("ptr") or (array.size == n + 1 and array[-1] > n)):
            assert array.dtype == np.int64, (name, array.dtype)


def test_one_shard_is_visited_in_the_order_of_data_in_memory(tmp_path):
    corpus = packed("tag", tmp_path, 100.0)
    model = BY_VERB["tag"].core(solver="dca", max_epochs=3).fit(corpus)
    assert model.weights_.tobytes() == from_memory("tag", tmp_path, solver="dca", max_epochs=3).weights_.tobytes()


def test_parts_of_text_change_nothing(tmp_path, monkeypatch):
    from partwise.tasks.tagging import packing

    whole = packed("tag", tmp_path, min_count=2)
    monkeypatch.setattr(packing, "CHUNK", 20)
    parts = packed("tag", tmp_path, name="parts.packed", min_count=2)
    for name in os.listdir(whole.path):
        assert (Path(whole.path) / name).read_bytes() == (Path(parts.path) / name).read_bytes(), name


def test_who_is_killed_goes_on(tmp_path, monkeypatch):
    from partwise.tasks.tagging import packing

    monkeypatch.setattr(packing, "CHUNK", 20)
    whole = packed("tag", tmp_path)
    append, calls = PackedWriter.append, []

    def killed(self, *given):
        append(self, *given)
        calls.append(self)
        if len(calls) == 2:
            with open(self._place("main.gold"), "ab") as file:  # half of the next part
                file.write(b"abc")
            raise KeyboardInterrupt

    monkeypatch.setattr(PackedWriter, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        packed("tag", tmp_path, name="again.packed")
    assert not (tmp_path / "again.packed").exists()
    with pytest.raises(PackedError, match="left unfinished"):
        partwise.PackedCorpus(tmp_path / "again.packed")
    said = []
    again = packed("tag", tmp_path, name="again.packed", say=said.append)
    assert "going on after 2 parts" in said[0]
    for name in os.listdir(whole.path):
        assert (Path(whole.path) / name).read_bytes() == (Path(again.path) / name).read_bytes(), name


def test_a_full_disk_leaves_nothing_that_looks_whole(tmp_path, monkeypatch):
    """The system refuses to write on in the middle of an array; when there is room again, the same command goes on."""
    import resource

    from partwise.tasks.tagging import packing

    monkeypatch.setattr(packing, "CHUNK", 20)
    whole = packed("tag", tmp_path)
    append, calls = PackedWriter.append, []

    def full(self, *given):
        calls.append(self)
        if len(calls) != 2:
            return append(self, *given)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(self._place("main.rows.index")) + 5, limits[1]))
        try:
            return append(self, *given)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    monkeypatch.setattr(PackedWriter, "append", full)
    with pytest.raises(OSError, match=r"again\.packed\.partial"):
        packed("tag", tmp_path, name="again.packed")
    assert not (tmp_path / "again.packed").exists()
    with pytest.raises(PackedError, match="left unfinished"):
        partwise.PackedCorpus(tmp_path / "again.packed")
    said = []
    again = packed("tag", tmp_path, name="again.packed", say=said.append)
    assert "going on after 1 part" in said[0]
    for name in os.listdir(whole.path):
        assert (Path(whole.path) / name).read_bytes() == (Path(again.path) / name).read_bytes(), name


def test_who_is_killed_before_anything_is_noted_begins_anew(tmp_path, monkeypatch):
    """A task that is packed by being fitted: arrays are on disk, and the journal does not know them."""
    whole = packed("classify", tmp_path)
    write_down, calls = PackedWriter._write_down, []

    def killed(self, note):
        calls.append(note)
        if len(calls) == 2:
            raise KeyboardInterrupt
        write_down(self, note)

    with monkeypatch.context() as patched:
        patched.setattr(PackedWriter, "_write_down", killed)
        with pytest.raises(KeyboardInterrupt):
            packed("classify", tmp_path, name="again.packed")
    left = tmp_path / "again.packed.partial"
    assert list(left.glob("*.npy"))
    (left / ".manifest.json.1.ff.tmp").write_bytes(b"{}")  # of who was killed between the link and the rename of a whole file
    again = packed("classify", tmp_path, name="again.packed")
    assert sorted(os.listdir(whole.path)) == sorted(os.listdir(again.path))
    for name in os.listdir(whole.path):
        assert (Path(whole.path) / name).read_bytes() == (Path(again.path) / name).read_bytes(), name


def test_held_out_labels_that_were_not_packed_are_wrong(tmp_path):
    corpus, dev = packed("tag", tmp_path), tmp_path / "dev.txt"
    dev.write_text("the D B-XX\ndog N I-XX\n")
    task = BY_VERB["tag"]
    training = task.command.start_packed(corpus.path, str(dev), task.command.options(), lambda **more: task.core(max_epochs=1))
    training.fit(checkpoint=None)
    assert training.score()["accuracy"] == 0.0


def test_two_cannot_pack_into_one_place(tmp_path):
    writer = PackedWriter(tmp_path / "corpus.packed", {})
    with pytest.raises(PackedError, match="Another process"):
        packed("tag", tmp_path)
    writer.discard()
    packed("tag", tmp_path)
    with pytest.raises(PackedError, match="there already"):
        packed("tag", tmp_path)


def altered(corpus, change):
    """A manifest that was altered by someone who knows how."""
    path = Path(corpus.path) / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    del manifest["crc32"]
    path.write_text(json.dumps({**manifest, "crc32": checksum(manifest)}))
    return corpus.path


def test_manifests_that_lie(tmp_path):
    path = Path(packed("tag", tmp_path).path)
    (path / "manifest.json").write_text((path / "manifest.json").read_text().replace('"examples": 3', '"examples": 4'))
    with pytest.raises(PackedError, match="checksum of manifest.json"):
        partwise.PackedCorpus(path)
    lies = {
        "bytes where its manifest has": lambda m: m["arrays"]["main.gold"].update(shape=[9]),
        "its shards are not those": lambda m: m.update(shards=[0, 5], shard_crc32=[0]),
        "newer|Upgrade": lambda m: m.update(format_version=99),
        "no structure": lambda m: m["problems"][""].update(type="os:system"),
        "no type": lambda m: m["arrays"]["main.gold"].update(dtype="O"),
        "not known here": lambda m: m.update(estimator=["Oracle"]),
        "should not be one": lambda m: m["problems"][""]["fields"].update(gold=3),
        "altered: KeyError": lambda m: m.pop("shared_crc32"),
        "altered: OverflowError": lambda m: m.update(shards=[0, 10**30]),
        "speaks of 9 examples": lambda m: m.update(examples=9),
    }
    for k, (words, lie) in enumerate(lies.items()):
        with pytest.raises(PackedError, match=words):
            partwise.PackedCorpus(altered(packed("tag", tmp_path, name=f"{k}.packed"), lie))


@pytest.mark.parametrize("lie", [{"n_labels": 2}, {"order": 2}, {"n_labels": 50}])
def test_sizes_that_are_not_those_of_the_model(tmp_path, lie):
    """Compiled loops would read and write beyond the weights."""
    path = altered(packed("tag", tmp_path), lambda m: m["problems"][""]["fields"].update(lie))
    with pytest.raises(PackedError, match="its model has .* weights"):
        BY_VERB["tag"].core().fit(partwise.PackedCorpus(path))


def test_what_is_damaged_is_named(tmp_path):
    corpus = packed("tag", tmp_path)
    place = Path(corpus.path) / "main.targets.npy"
    data = bytearray(place.read_bytes())
    data[-1] ^= 1
    place.write_bytes(data)
    with pytest.raises(PackedError, match=f"shard {corpus.n_shards - 1} .*damaged"):
        BY_VERB["tag"].core().fit(partwise.PackedCorpus(corpus.path))
    place.unlink()
    with pytest.raises(PackedError, match="main.targets.npy is missing"):
        partwise.PackedCorpus(corpus.path)
    other = packed("tag", tmp_path, name="other.packed")
    (Path(other.path) / "model").unlink()
    with pytest.raises(PackedError, match="the file 'model' is missing"):
        partwise.PackedCorpus(other.path).model()


def test_parameters_of_what_was_packed(tmp_path):
    corpus = packed("tag", tmp_path, order=2)
    Labeler = BY_VERB["tag"].core
    assert Labeler(max_epochs=1).fit(corpus).order == 2
    with pytest.raises(ValueError, match="packed with order=2"):
        Labeler(order=3).fit(corpus)
    with pytest.raises(ValueError, match="give it alone"):
        Labeler().fit(corpus, [["D"]])
    with pytest.raises(TypeError, match="cannot be learnt by"):
        BY_VERB["classify"].core().fit(corpus)
    held = Labeler(max_epochs=3, early_stopping=True, validation_fraction=0.4).fit(corpus)
    assert np.isfinite(held.result_.history[0].validation)


def test_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = BY_VERB["tag"].command.workload(tmp_path)

    def run(*words):
        done = CliRunner().invoke(app, [str(word) for word in words])
        return done.exit_code, done.stdout + done.stderr

    assert run("pack", "tag", file, file, "-o", "two.packed", "--json")[0] == 0
    assert len(partwise.PackedCorpus("two.packed")) == 6
    status, said = run("train", "tag", "two.packed", "-o", "model", "--dev", file, "--epochs", "2")
    assert status == 0 and "dev: " in said, said
    Path("three.packed.partial").mkdir()
    assert "left unfinished" in run("train", "tag", "three.packed", "-o", "model")[1]
    status, said = run("train", "parse", "two.packed", "-o", "model")
    assert status == 1 and "packed for 'partwise train tag'" in said
    status, said = run("train", "tag", "two.packed", "-o", "model", "--label-column", "1")
    assert status == 1 and "--label-column was decided when" in said
    assert "no such file" in run("pack", "tag", "nowhere.txt", "-o", "four.packed")[1]
