"""The benchmark harness on toy data: what it measures, how it judges, what it does with failures. No timings are asserted."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import partwise
from partwise.datasets import chunking_attributes
from partwise.text.columns import read_columns
from partwise.text.template_encoder import TemplateEncoder

ROOT = Path(__file__).parent.parent.parent
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks come with the checkout only", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from benchmarks.block_averaging import averaged  # noqa: E402
from benchmarks.contenders import CHUNKERS, Contender  # noqa: E402
from benchmarks.datasets import SPANS, TOY  # noqa: E402
from benchmarks.peers import attributes  # noqa: E402
from benchmarks.potts import one as potts_grid  # noqa: E402
from benchmarks.processes import measure, python  # noqa: E402
from benchmarks.race import Options, race  # noqa: E402
from benchmarks.report import Curve, Report, Row  # noqa: E402
from benchmarks.trees import by_inverse, our_marginals, verdict  # noqa: E402
from benchmarks.trees import sentences as arc_scores  # noqa: E402

# A tool that learns the most frequent label of each word, in a few lines; `fail` makes it fail.
TOOL = """
import json, sys
verb, a, b, c = sys.argv[1:]
def sentences(path):
    return [[line.split() for line in block.splitlines()] for block in open(path).read().split("\\n\\n") if block.strip()]
if verb == "train":
    json.dump({word: label for s in sentences(a) for word, _, label in s}, open(b, "w"))
    print(json.dumps({"cpu": {"read": 0.25, "train": 0.5}, "seconds": {"read": 9, "train": 9}}))
elif verb == "tag":
    known = json.load(open(a))
    open(c, "w").write("\\n\\n".join("\\n".join(" ".join([*t, known[t[0]]]) for t in s) for s in sentences(b)))
else:
    sys.exit("broken tool")
"""


def toy_contender(name, module="json", verb="train", **more):
    return Contender(
        name,
        module,
        module,
        "-",
        lambda data, file, model: [sys.executable, "-c", TOOL, verb, str(file), str(model), "-"],
        lambda data, model, file, out: [sys.executable, "-c", TOOL, "tag", str(model), str(file), str(out)],
        **more,
    )


def test_race_measures_and_judges(tmp_path):
    contenders = [
        toy_contender("us", ours=True),
        toy_contender("them", flattered=True),
        toy_contender("patient", slow=True),
        toy_contender("broken", verb="fail"),
        toy_contender("absent", module="no_such_module"),
    ]
    outcomes = {outcome.contender: outcome for outcome in race(TOY, contenders, Options(tmp_path, repeat=2))}
    assert list(outcomes) == ["us, first run", "us", "them", "patient", "broken", "absent"]
    us = outcomes["us"]
    assert us.quality == {"F1": 100.0, "accuracy": 100.0}
    assert us.stages("train") == {"read": 0.25, "train": 0.5}
    assert us.median("train", "cpu") > 0 and us.median("tag", "peak_mb") > 1
    assert [len(outcomes[name].train) for name in outcomes] == [1, 2, 2, 1, 1, 0]
    assert "broken tool" in outcomes["broken"].note and not outcomes["broken"].quality
    assert outcomes["absent"].note.startswith("skipped: no_such_module is not installed")


def test_short_version_and_choice_of_contenders(tmp_path):
    short, chosen = Options(tmp_path, short=True), Options(tmp_path, short=True, only=("dense",))
    assert [c.name for c in CHUNKERS if short.wants(c)] == [
        "partwise defaults",
        "partwise fast",
        "partwise accurate",
        "crfsuite pa",
        "crfsuite pa streamed",
        "crfsuite l2sgd",
    ]
    assert [c.name for c in CHUNKERS if chosen.wants(c)] == ["crfsuite lbfgs dense"]


def test_measure_tells_time_memory_and_failure():
    many = measure([sys.executable, "-c", "x = bytearray(200_000_000); x[::4096] = b'x' * len(x[::4096]); print('{\"a\": 1}')"])
    few = measure([sys.executable, "-c", "print('not for machines')"])
    assert not many.failure and many.said == {"a": 1} and few.said == {}
    assert 198 < many.peak_mb - few.peak_mb < 205  # 10^6 bytes
    assert few.cpu > 0 and few.wall > 0
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(10**7))'])"
    assert measure([sys.executable, "-c", child]).cpu > few.cpu  # children count
    assert measure([sys.executable, "-c", "raise SystemExit(3)"]).failure.startswith("exit status 3")
    late = measure([sys.executable, "-c", "import time; time.sleep(60)"], limit=0.5)
    assert late.failure == "not finished after 0.5 s" and late.wall < 30


def test_predictions_are_compared_by_their_last_column(tmp_path):
    truth, other = tmp_path / "truth", tmp_path / "other"
    truth.write_text("the DT B-NP\ndog NN I-NP\n\nsees VB O\n")
    other.write_text("the DT B-NP B-NP\ndog NN I-NP O\n\nsees VB O O\n")
    assert SPANS.score(truth, other) == pytest.approx({"F1": 0.0, "accuracy": 200 / 3})
    other.write_text("the DT B-NP B-NP\n")
    with pytest.raises(ValueError, match="sequences"):
        SPANS.score(truth, other)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9])
def test_peers_make_the_attributes_we_make(n):
    words = ["The", "U.S.", "x-9", "aB", "dogs", "the", "The", "'s", "1,000"][:n]
    columns = [words, [f"P{i % 3}" for i in range(n)], ["O"] * n]
    tokens = list(zip(*columns, strict=True))
    ours = [set(token) for token in chunking_attributes(tokens)]
    theirs = attributes.chunking(columns)
    assert list(map(set, theirs)) == ours and list(map(len, theirs)) == list(map(len, ours))
    rows = TemplateEncoder("words", columns=["w"]).fit_transform([tokens])
    theirs = attributes.words(columns)
    numbers = {}  # the same features up to their names
    for item, a, b in zip(theirs, rows.ptr[:-1], rows.ptr[1:], strict=True):
        assert len(set(item)) == len(item) == b - a
        for attribute in item:
            numbers.setdefault(attribute, []).append(1)
    occurrences = sorted(map(len, numbers.values()))
    assert occurrences == sorted(v for v in map(list(rows.index).count, set(rows.index.tolist())))


def test_peer_program_reads_what_we_read(tmp_path):
    files = TOY.load(tmp_path)
    ours = [list(map(list, zip(*sentence, strict=True))) for sentence in read_columns(files.train).sentences()]
    assert list(attributes.read_sentences(str(files.train))) == ours


@pytest.mark.skipif(importlib.util.find_spec("pycrfsuite") is None, reason="python-crfsuite is not installed")
def test_crfsuite_program(tmp_path):
    files = TOY.load(tmp_path)
    settings = ["--set", "algorithm=pa", "--set", "max_iterations=5"]
    for more in ([], ["--stream"]):
        model, out = tmp_path / "model", tmp_path / "out"
        cost = measure(python("benchmarks.peers.crfsuite", "train", files.train, model, *settings, *more))
        assert not cost.failure and cost.said["epochs"] >= 1 and "train" in cost.stages
        assert not measure(python("benchmarks.peers.crfsuite", "tag", model, files.test, out)).failure
        assert SPANS.score(files.test, out)["accuracy"] == 100
    cost = measure(python("benchmarks.peers.crfsuite", "curve", files.train, files.test, tmp_path, *settings, "--points", "1,2"))
    assert [point["epoch"] for point in cost.said["points"]] == [1, 2]


def test_report_as_table_json_and_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    outcomes = race(TOY, [toy_contender("us"), replace(toy_contender("them"), settings="x=1")], Options(tmp_path, repeat=1))
    curve = Curve("partwise x", "F1", [1, 2], [0.5, 1.0], [90.0, 93.65])
    rows = [Row("toy", "speed", "tokens/s", 30.0, 10.0, "them", higher_is_better=True), Row("toy", "time", "s", 2.0, None, "-")]
    Report("toy", rows, outcomes, [curve], ["a note"]).publish(tmp_path / "results")
    shown = capsys.readouterr().out
    assert "them" in shown and "93.65" in shown and "a note" in shown
    content = json.loads((tmp_path / "results" / "toy.json").read_text())
    assert [row["ratio"] for row in content["rows"]] == [3.0, None]
    assert content["processor"] is not None and content["outcomes"][1]["settings"] == "x=1"
    assert content["outcomes"][0]["train"]["cpu"] > 0 and content["curves"][0]["quality"] == [90.0, 93.65]
    assert curve.first_reaching(93.6) == 1.0 and curve.first_reaching(94.0) is None
    assert (tmp_path / "results" / "toy.png").stat().st_size > 1000


def test_a_benchmark_that_cannot_run_says_why(tmp_path, monkeypatch):
    from benchmarks import encoding, tagging
    from benchmarks.__main__ import run_one

    monkeypatch.delenv("PARTWISE_DATA", raising=False)
    skipped = run_one("encoding", Options(tmp_path))
    assert "PARTWISE_DATA" in skipped.notes[0] and not skipped.failed and encoding.__doc__

    def fail(options):
        raise RuntimeError("partwise fast: exit status 2")

    monkeypatch.setattr(tagging, "run", fail)
    failed = run_one("tagging", Options(tmp_path))
    assert failed.failed and "exit status 2" in failed.notes[0]


def test_time_without_start_up_is_not_made_up_from_noise():
    from benchmarks.tagging import above_start

    assert above_start([3.0, 3.2, 3.1], [1.0, 1.1, 1.0]) == pytest.approx(2.1)
    assert above_start([0.95, 0.96, 1.0], [0.9, 1.0, 1.1]) is None
    assert above_start([3.0], [1.0]) is None


def test_trees_are_judged_alike():
    scores = arc_scores(3, 1.0)
    with partwise.interpret():
        ours = our_marginals(scores)
    np.testing.assert_allclose(by_inverse(scores), ours, atol=1e-9)
    assert float(verdict(ours)) < 1e-12 and verdict(ours / 0.5) == "1e+00" and verdict(ours * np.nan) == "not finite"


def test_potts_grids():
    with partwise.interpret():
        found = potts_grid(0, 1.0, 1, side=3)
    assert found["above"] >= -1e-9 and found["gap"] < 1e-6 and found["is near"] and found["whole proven"] and found["agree"]


@pytest.mark.interpreted
@pytest.mark.parametrize(("parts", "gap"), [(1, 1e-3), (3, 2e-2)])
def test_averaged_blocks_have_the_certificate_of_the_whole(parts, gap):
    rng = np.random.default_rng(0)
    problem = partwise.multiclass_problem(rng.normal(size=(18, 4)), rng.integers(0, 3, 18))
    with partwise.interpret():
        gaps = averaged(problem, parts, 100, 1.0)
        best = partwise.solve(problem, "hinge", "sdm", 1.0, tol=1e-6)
    assert min(gaps) >= 0.0 and gaps[-1] <= gap
    if parts == 1:
        assert len(gaps) <= best.n_epochs
