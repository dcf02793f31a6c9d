"""``partwise reproduce``: cells run once, survive a kill, say what is missing; the papers' experiments run on made-up data."""

import dataclasses
import gzip
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import partwise
from conftest import without_matplotlib
from partwise.cli.app import app
from partwise.datasets import make_sentences
from partwise.experiments import EXPERIMENTS, get_experiment
from partwise.experiments.experiment import SETTINGS, Result, mean_interval, settings_of
from partwise.experiments.martins import ENTITIES, TREES, files_of, read_parts
from partwise.experiments.martins_table_1 import chosen
from partwise.experiments.multiclass import SETS, standardise, stratified_folds
from partwise.experiments.proteins import families, parts_of, read_set
from partwise.experiments.runner import file_of, read_done
from partwise.experiments.tagging import CHUNKING, Split, make_split, read_corpus, with_outliers

TOY = "toy_experiment:Toy"


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A folder with data for the toy experiment."""
    monkeypatch.setitem(EXPERIMENTS, "toy", TOY)
    (tmp_path / "data" / "toy").mkdir(parents=True)
    (tmp_path / "data" / "toy" / "numbers.txt").write_text("90")
    return tmp_path


def run(folder, *arguments):
    where = ["--data", folder / "data", "--out", folder / "out"]
    return CliRunner().invoke(app, ["reproduce", "toy", *map(str, [*where, *arguments])])


def log(folder):
    return (folder / "data/toy/log.txt").read_text().splitlines()


# ---------------------------------------------------------------------------------------------------------------------
# What runs experiments
# ---------------------------------------------------------------------------------------------------------------------


def test_table_json_and_plot(toy):
    result = run(toy, "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["experiment"] == "toy" and summary["setting"] == "quick" and summary["cells"] == 4
    hinge, ramp = summary["tables"][0]["rows"]
    assert hinge["mean"]["value"] == 90.5 and ramp["mean"]["value"] == 91.5 and hinge["difference"] is None
    assert (ramp["difference"]["low"], ramp["difference"]["value"], ramp["difference"]["n"]) == (1.0, 1.0, 2)
    stored = json.loads((toy / "out/results.quick.json").read_text())
    assert [c["cell"]["seed"] for c in stored["cells"]] == [0, 0, 1, 1] and stored["cells"][0]["numbers"]["none"] is None
    assert stored["summary"]["tables"] == summary["tables"] and stored["versions"]["numpy"] == np.__version__
    assert (toy / "out/plot.quick.png").read_bytes().startswith(b"\x89PNG") and len(summary["files"]) == 2
    assert "[4/4]" in result.stderr and "left" in result.stderr and "| hinge | 90.50 [84.15, 96.85]" in result.stderr

    again = run(toy, "--quiet")
    assert "| ramp  | 91.50 [85.15, 97.85] | +1.00 [+1.00, +1.00] |" in again.stdout and again.stderr == ""
    assert "quick: two seeds." in again.stdout


def test_cells_are_run_once_and_the_settings_apart(toy):
    run(toy), run(toy)
    assert log(toy) == ["hinge 0", "ramp 0", "hinge 1", "ramp 1"]
    assert "4 of 4 cells were done before" in run(toy).stderr
    run(toy, "--setting", "full")
    assert len(log(toy)) == 4 + 10
    run(toy, "--fresh")
    assert len(log(toy)) == 4 + 10 + 4


def test_a_cell_that_is_not_what_it_says_is_run_again(toy):
    run(toy)
    broken, foreign, *_ = sorted((toy / "out/cells/quick").glob("*.json"))
    broken.write_text("{")
    foreign.write_text(foreign.read_text().replace('"seed": 1', '"seed": 7'))
    run(toy)
    assert len(log(toy)) == 4 + 2
    (toy / "data/toy/numbers.txt").write_text("80.5")  # other data
    assert json.loads(run(toy, "--json").stdout)["tables"][0]["rows"][0]["mean"]["value"] == 81.0
    assert len(log(toy)) == 4 + 2 + 4


def test_goes_on_from_the_file_of_another_run(toy):
    alone = json.loads(run(toy, "--json").stdout)
    (toy / "out").rename(toy / "before")
    again = run(toy, "--json", "--from", toy / "before/results.quick.json")
    assert "4 of 4 cells are in" in again.stderr and json.loads(again.stdout)["tables"] == alone["tables"] and len(log(toy)) == 4
    (toy / "data/toy/numbers.txt").write_text("1")  # other data
    assert "0 of 4 cells are in" in run(toy, "--from", toy / "before/results.quick.json").stderr and len(log(toy)) == 8


def test_processes_give_the_same(toy):
    alone = json.loads(run(toy, "--json").stdout)
    several = json.loads(run(toy, "--json", "--fresh", "--jobs", 2).stdout)
    assert several["tables"] == alone["tables"] and len(log(toy)) == 8


@pytest.mark.skipif(os.name != "posix", reason="kills a process the POSIX way")
@pytest.mark.parametrize("jobs", [1, 2])
def test_goes_on_after_a_kill(toy, jobs):
    code = f"from partwise.experiments import EXPERIMENTS; EXPERIMENTS['toy'] = {TOY!r}; from partwise.cli import main; main()"
    command = [sys.executable, "-c", code, "reproduce", "toy", "--data", toy / "data", "--out", toy / "out", "--jobs", str(jobs)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen(command, env={**environment, "TOY_PAUSE": "1.5"}, stderr=subprocess.DEVNULL)
    cells = toy / "out/cells/quick"
    deadline = time.monotonic() + 120
    while not list(cells.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.5)  # workers notice that their parent is gone
    begun, done = len(log(toy)), len(list(cells.glob("*.json")))
    time.sleep(2.0)  # what they were at is lost, and nothing new is begun
    assert 1 <= done < 4  # what was half written has another name, and is no result
    assert (begun, done) == (len(log(toy)), len(list(cells.glob("*.json"))))
    finished = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert finished.returncode == 0 and f"{done} of 4 cells were done before" in finished.stderr
    assert len(log(toy)) == begun + 4 - done and "| ramp" in finished.stdout


def test_an_interrupted_fit_on_wrong_labels_is_no_result(monkeypatch):
    from partwise.experiments import noisy_sets, robust_training

    class Interrupted:
        train, result_ = (None, None), type("Result", (), {"status": "interrupted"})

        def make(self, **parameters):
            return self

        def fit(self, X, y):
            return self

    monkeypatch.setattr(noisy_sets, "noisy_set", lambda *which: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        robust_training.RobustTraining().run(None, robust_training.Cell("trees", "near", 0.2, "ramp", 0, 10))


def test_an_interrupted_training_is_no_result(monkeypatch):
    from partwise.experiments import tagging

    class Interrupted:
        status = "interrupted"

    monkeypatch.setattr("partwise.solvers.solve", lambda *a, **k: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        tagging.train(None, "hinge", "sdm", 1.0, 5)


def test_what_is_missing_is_named(toy, monkeypatch):
    def refused(*arguments):
        result = CliRunner().invoke(app, ["reproduce", *map(str, arguments)])
        assert result.exit_code == 1 and result.stdout == ""
        assert result.stderr.startswith("partwise: error: ") and result.stderr.count("\n") == 1
        return result.stderr

    assert "There is no experiment 'figure-9'. There are: mancev-table-5.1, mancev-figure-4.1" in refused("figure-9")
    assert "--list shows them" in refused()
    monkeypatch.delenv("PARTWISE_DATA", raising=False)
    assert "give the folder with --data, or set PARTWISE_DATA. It must hold toy/numbers.txt" in refused("toy")
    assert "nowhere does not exist" in refused("toy", "--data", toy / "nowhere")
    (toy / "data/toy/numbers.txt").unlink()
    assert "toy needs toy/numbers.txt, which the data folder" in refused("toy", "--data", toy / "data")
    assert not (toy / "out").exists()
    monkeypatch.setenv("PARTWISE_DATA", str(toy / "data"))
    assert "toy needs toy/numbers.txt" in refused("toy")
    assert "is not a folder" in refused("toy", "--out", __file__)
    assert "no results to go on from" in refused("toy", "--data", toy / "data", "--from", toy / "nothing.json")
    assert "--setting must be quick or full" in refused("toy", "--setting", "slow")


def test_without_matplotlib(toy, monkeypatch):
    run(toy)
    (toy / "out/plot.quick.png").unlink()
    without_matplotlib(monkeypatch)
    result = run(toy)
    assert result.exit_code == 0 and 'pip install "partwise[plot]"' in result.stderr and "| ramp" in result.stdout
    assert not (toy / "out/plot.quick.png").exists()


def test_list():
    result = CliRunner().invoke(app, ["reproduce", "--list"])
    assert result.exit_code == 0 and len(result.stdout.splitlines()) == 2 * len(EXPERIMENTS)
    listed = json.loads(CliRunner().invoke(app, ["reproduce", "--list", "--json"]).stdout)["experiments"]
    assert [e["name"] for e in listed] == list(EXPERIMENTS)
    code = "import sys; from partwise.cli.app import app; app(['reproduce', '--list'], standalone_mode=False); "
    code += "print([m for m in ('numba', 'scipy', 'sklearn', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.splitlines()[-1] == "[]"


def test_intervals():
    x = [93.1, 93.4, 92.9, 93.6]
    interval = mean_interval(x)
    half = 3.182446 * np.std(x, ddof=1) / 2  # t of 3 degrees of freedom
    assert interval.value == pytest.approx(93.25) and interval.high - interval.value == pytest.approx(half, rel=1e-6)
    wider = mean_interval(x, overlap=1 / 9)
    assert (wider.high - wider.value) / half == pytest.approx(np.sqrt((1 / 4 + 1 / 9) * 4))
    assert str(mean_interval([2.0])) == "2.00" and np.isnan(mean_interval([]).value)


# ---------------------------------------------------------------------------------------------------------------------
# The papers' experiments, on made-up data
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """A folder with all the files that experiments ask for, in their formats, tiny."""
    folder = tmp_path_factory.mktemp("corpora")
    rng = np.random.default_rng(0)
    for name in ("conll2000", "brown", "multiclass", "ocr_letters", "covtype", "news20"):
        (folder / name).mkdir()
    for name in {file.split("/")[0] for file in files_of(*ENTITIES, *TREES)}:
        (folder / name).mkdir()

    def write(name, lines):
        with gzip.open(folder / name, "wt", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)

    for part, n in (("train", 15), ("test", 5)):
        sentences = make_sentences(n, seed=n)
        write(f"conll2000/{part}.txt.gz", [line for s in sentences for line in [*(" ".join(t) for t in s), ""]])
    for corpus in ENTITIES:
        for k, file in enumerate(files_of(corpus)):
            cells = [
                [("\t".join([w, c]) if corpus == "wnut17" else f"{w} {p} {c}") for w, p, c in s] for s in make_sentences(9, k)
            ]
            write(file, [line for sentence in cells for line in [*sentence, ""]])
    for file in files_of(*TREES):
        write(file, ["1\tWe\twe\tPRON\tP\t_\t2\tnsubj\t_\t_", "2\tgo\tgo\tVERB\tV\t_\t0\troot\t_\t_", ""] * 11)
    texts = (" ".join(f"{word}_{tag.lower()}" for word, tag, _ in s) for s in make_sentences(15, seed=3))
    write("brown/brown.tsv.gz", [f"news\tca{i:02}\t{text}" for i, text in enumerate(texts)])
    for files in SETS.values():
        for file in files:
            y = np.arange(24) % 3
            write(file, [",".join(map(str, [k + 1, *np.round(rng.normal(size=3) + np.eye(3)[k] * 3, 3), 7])) for k in y])
    write("covtype/covtype.csv.gz", [",".join(map(str, [k % 3 + 1, *rng.integers(0, 9, 10), 1, k % 40 + 1])) for k in range(30)])
    for part in ("train", "test"):
        write(f"news20/{part}.svm.gz", [f"{k % 3 + 1} {k % 3 + 1}:2 {k + 5}:1" for k in range(30)])
    (folder / "protein_balibase3").mkdir()
    rows = [f"RV11\tBBS\tf{k}\ta\tb\t{a}C-\t{a}-W\t1101" for k, a in enumerate(("WA", "AK", "LV", "CD", "GG", "PW", "MI", "XS"))]
    write("protein_balibase3/pairs.tsv.gz", ["set\tkind\tfamily\tid1\tid2\trow1\trow2\tcore", *rows])
    (folder / "protein_homstrad").mkdir()
    rows = [f"f{k}\ta\tb\t{tool}\t{a}C-\t{a}-W" for k, a in enumerate(("WA", "AK")) for tool in ("usalign", "matt")]
    write("protein_homstrad/pairs.tsv.gz", ["family\tid1\tid2\ttool\trow1\trow2", *rows])
    (folder / "protein_tmalign").mkdir()
    rows = [f"a{k}\tb{k // 2}\t0.{k + 4}\t0.4\t1\tWAC-\tWA-W\t:.12" for k in range(4)]
    for part in ("valid", "test"):
        write(f"protein_tmalign/pairs_{part}.tsv.gz", ["id1\tid2\ttm1\ttm2\trmsd\trow1\trow2\tstates", *rows])
    (folder / "rna_archiveii").mkdir()
    loops = ["".join("ACGU"[k // 4**m % 4] for m in range(3)) for k in range(16)]
    rows = [f"r{k}\t{('5s', 'srp', 'tRNA', '16s')[k % 4]}\t0\tGG{loop}CC\t((...))" for k, loop in enumerate(loops)]
    write("rna_archiveii/archiveii.tsv.gz", ["id\tfamily\tfold\tsequence\tstructure", *rows])
    (folder / "ohsumed_letor").mkdir()
    for k in range(1, 6):
        ranked = [f"{d % 3} qid:{k}{q} 1:{d % 3 + rng.random()} 2:{rng.random()}" for q in range(2) for d in range(4)]
        write(f"ohsumed_letor/S{k}.txt.gz", ranked)
    letters = np.arange(60) % 26
    pixels = rng.integers(0, 256, (26, 16), dtype=np.uint8)[letters]
    words = np.arange(60) // 6
    np.savez(
        folder / "ocr_letters/letters.npz",
        pixels=pixels,
        labels=letters,
        word_id=words,
        position=np.arange(60) % 6,
        fold=words // 5,
    )
    return folder


def small(experiment):
    """Its quick cells, as small as they can be; all that a table needs."""
    changes = {"T": 1, "P": 2, "epochs": 2, "sentences": 12, "inner": 2, "folds": 2, "rows": 20, "examples": 5, "every": 1}
    changes |= {"tol": 0.5, "passes": 2, "bits": 8, "train": 3, "test": 2, "size": 40}
    cells, quick = [], experiment.cells("quick")
    few = len({settings_of(cell).get("C") for cell in quick}) == 1
    for cell in quick:
        given = settings_of(cell)
        less = {name: value for name, value in changes.items() if given.get(name) is not None}
        if "grid" in given:
            less["grid"] = given["grid"][:2]
        if "bits" in given:  # Martins: trees are slow in the interpreter
            less["sentences"] = 3 if given["corpus"] == "turkish" else 9
            if given["corpus"] in ("spanish", "turkish") and given["C"] in ((0.1, 1.0) if "passes" in given else (0.1,)):
                cells.append(dataclasses.replace(cell, **less))
            continue
        if "outliers" in given:
            less["outliers"] = min(given["outliers"], 0.1)
        keep = given.get("seed", 0) == 0 and given.get("fold", 0) < 2 and (few or given.get("C", 1e-3) in (1e-3, 1e-1, 10.0))
        if keep and given.get("dataset", "dna") not in ("letter", "segment", "shuttle", "usps"):
            cells.append(dataclasses.replace(cell, **less))
    return list(dict.fromkeys(cells))


LONG = ("robust-training",)  # judges and their noise take a minute in the interpreter


@pytest.mark.filterwarnings("ignore:overflow encountered")  # hashes of arcs wrap around
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in EXPERIMENTS])
def test_the_experiments(name, corpora, tmp_path, monkeypatch):
    experiment = get_experiment(name)
    cells = small(experiment)
    monkeypatch.setattr(type(experiment), "cells", lambda self, setting: cells)
    monkeypatch.setattr("partwise.experiments.do_table_2.OPENS", (-10,))  # grids for the interpreter
    monkeypatch.setattr("partwise.experiments.choosing.MOST", 0)
    monkeypatch.setattr("partwise.experiments.do_figure_1.DIRECTIONS", 1)
    with partwise.interpret():
        result = CliRunner().invoke(app, ["reproduce", name, "--data", str(corpora), "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["cells"] == len(cells) >= 4 and all(table["rows"] for table in summary["tables"])
    assert (tmp_path / "plot.quick.png").exists()
    for stored in json.loads((tmp_path / "results.quick.json").read_text())["cells"]:
        for measure in ("f1", "accuracy", "dev", "test"):
            assert all(0 <= value <= 100 for value in np.atleast_1d(stored["numbers"].get(measure, 0)))
        if name == "do-figure-2":
            bounds = [np.array(stored["numbers"][bound]) for bound in ("actual", "ramp", "convex")]
            assert (bounds[0] <= bounds[1] + 1e-9).all() and (bounds[1] <= bounds[2] + 1e-9).all() and len(bounds[0]) == 2


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_cells_have_names_of_their_own(name, setting, tmp_path):
    experiment = get_experiment(name)
    cells = experiment.cells(setting)
    assert len({file_of(tmp_path, setting, cell) for cell in cells}) == len(cells) > 1
    assert experiment.minutes[setting] > 0 and experiment.about and experiment.source
    assert max(len(file_of(tmp_path, setting, cell).name) for cell in cells) < 200


def test_proteins_reliable_columns_and_families(corpora):
    homstrad, chains = read_set(corpora, "homstrad", 5), read_set(corpora, "tmalign", 5)
    assert [core.tolist() for core in homstrad.core] == [[True, True, True]] * 2 and len(set(homstrad.fields["family"])) == 2
    assert len(chains) == 4 and {len(core) for core in chains.core} == {
        3
    }  # a2, a3 of both parts: the score of a1 is not above 0.5
    assert [core.tolist() for core in chains.core[:1]] == [[True, False, False]]
    assert families(["a", "c", "d", "e"], ["b", "b", "e", "f"]) == ["b", "b", "f", "f"]
    parts = parts_of(chains, 2, seed=0)
    assert len(set(parts.tolist())) == 1  # all four share a chain


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_where_there_is_no_held_out_part_every_tenth_sentence_is(corpora):
    basque, greek = read_parts(corpora, "basque"), read_parts(corpora, "greek")
    assert len(basque.train.starts) - 1 == 10 and len(greek.train.starts) - 1 == 11
    assert basque.train.single_root
    with partwise.interpret():
        assert basque.dev(np.zeros(1 << 22)) <= 100.0


def test_c_is_chosen_on_the_held_out_part():
    cells = [c for c in get_experiment("martins-table-1").cells("quick") if (c.corpus, c.loss) == ("turkish", "CRF")]
    numbers = [{"dev": 80.0, "test": 1.0}, {"dev": 90.0, "test": 2.0}, {"dev": 90.0, "test": 3.0}]
    best = chosen([Result(c, n, 0.0) for c, n in zip(cells, numbers, strict=True)])
    assert best.numbers["test"] == 2.0  # of two that tie, the smaller C; the test part has no say


def test_mancevs_constants():
    sdm, pegasos, without = (method.C for method in CHUNKING)
    assert sdm == 0.1 and pegasos == pytest.approx(0.07, rel=0.01) and without == pytest.approx(0.14, rel=0.01)


def test_outliers_hit_the_asked_share_and_only_training(corpora):
    split = make_split(read_corpus(corpora, "conll2000"), read_corpus(corpora, "conll2000", "test"), "chunking")
    assert isinstance(split, Split) and with_outliers(split, 0.0, 1) is split
    noisy = with_outliers(split, 0.2, 1)
    starts = split.train.starts
    hit = [(noisy.train.gold[a:b] != split.train.gold[a:b]).any() for a, b in zip(starts[:-1], starts[1:], strict=True)]
    assert sum(hit) == round(0.2 * len(hit)) and noisy.test is split.test
    assert (noisy.train.targets == noisy.train.gold).all()
    assert not (with_outliers(split, 0.2, 2).train.gold == noisy.train.gold).all()


def test_folds_and_features():
    y = np.array([0] * 10 + [1] * 5)
    fold = stratified_folds(y, 5, seed=0)
    assert all(np.bincount(y[fold == f]).tolist() == [2, 1] for f in range(5))
    x = np.random.default_rng(0).normal(3, 2, (50, 2))
    x = np.column_stack([x, np.ones(50)])
    train, test = standardise(x[:40], x[40:])
    assert np.allclose(train[:, :2].mean(0), 0) and np.allclose(train[:, :2].std(0), 1)
    assert (
        (train[:, 2] == 0).all()
        and (train[:, 3] == 1).all()
        and np.allclose(test[0, 0] * x[:40, 0].std(), x[40, 0] - x[:40, 0].mean())
    )


def test_numbers_of_another_cell_do_not_count(tmp_path):
    cell = get_experiment("mancev-figure-5.1").cells("quick")[0]
    path = tmp_path / "cell.json"
    path.write_text(json.dumps({"cell": settings_of(cell), "stamp": [["version", 1]], "numbers": {"f1": 1.0}, "seconds": 2.0}))
    assert read_done(path, cell, [["version", 1]]) == Result(cell, {"f1": 1.0}, 2.0)
    assert read_done(path, cell, [["version", 2]]) is None
    assert read_done(path, dataclasses.replace(cell, seed=9), [["version", 1]]) is None
