"""Threads and processes side by side: answers stay the same, and files are one process's or the other's, never a mixture."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import golden_files
from partwise import Classifier, SegmentLabeler, SequenceLabeler, load
from partwise.tasks.common.registry import TASKS

pytestmark = pytest.mark.interpreted

WORDS = [[["a"], ["b"], ["c"]], [["b"]], [["c"], ["a"]]]
LABELS = [["A", "B", "A"], ["B"], ["A", "A"]]


LONG = ("parse", "constituency", "fold")  #: in the interpreter


@pytest.mark.parametrize("verb", [pytest.param(t.verb, marks=pytest.mark.slow) if t.verb in LONG else t.verb for t in TASKS])
def test_threads_never_change_a_model(verb, tmp_path):
    task = next(task for task in TASKS if task.verb == verb)
    data = str(task.command.workload(tmp_path))
    found = []
    for jobs in ("1", "3"):
        path, out = tmp_path / f"model-{jobs}", tmp_path / f"answers-{jobs}"
        golden_files.run(["train", verb, data, "-o", str(path), "-q", "--epochs", "2", "--jobs", jobs])
        golden_files.run(["predict", str(path), data, "-o", str(out), "-q", "--jobs", jobs])
        found.append((load(path).weights_, out.read_bytes()))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def one_model_of_each_kind():
    """Golden models, one for each estimator and set of questions."""
    found = {}
    for name in golden_files.models():
        about = golden_files.read(name)
        asked = tuple(sorted({call["call"] for call in about["calls"] if call["call"].startswith("predict")}))
        found.setdefault((about["estimator"], asked), name)
    return sorted(found.values())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", one_model_of_each_kind())
def test_threads_never_change_an_answer(name, tmp_path):
    """Best, k best, probabilities and whatever else a model can be asked."""
    about = golden_files.read(name)
    inputs = {key: golden_files.from_json(value) for key, value in about["inputs"].items()}
    model, other = (load(golden_files.unpack(name, tmp_path / "m")) for _ in range(2))
    other.n_jobs = 3
    for call in about["calls"]:
        if call["call"].startswith("predict"):
            assert golden_files.ask(model, call, inputs) == golden_files.ask(other, call, inputs), call


def test_segments_are_the_same_in_threads():
    X, y = [["He", "met", "Ann"], ["Oslo"], [], ["Ann", "left"]], [[("P", 2, 3)], [("L", 0, 1)], [], [("P", 0, 1)]]
    one, many = (SegmentLabeler("crf", solver="lbfgs", max_epochs=3, n_jobs=n).fit(X, y) for n in (1, 3))
    np.testing.assert_array_equal(one.weights_, many.weights_)
    for ask in ("predict", "predict_segments", "predict_kbest", "predict_marginals"):
        assert str(getattr(one, ask)(X)) == str(getattr(many, ask)(X))


def test_models_answer_while_others_learn():
    model = SequenceLabeler(solver="dca", max_epochs=3).fit(WORDS, LABELS)
    expected, wrong, over = model.predict(WORDS), [], threading.Event()

    def answer():
        while not over.is_set():
            if model.predict(WORDS) != expected:
                wrong.append("another answer")

    def learn():
        for seed in range(5):
            Classifier(solver="dca", max_epochs=2, random_state=seed).fit(np.eye(4), [0, 1, 0, 1]).predict(np.eye(4))
            SequenceLabeler(solver="dca", max_epochs=2, random_state=seed).fit(WORDS, LABELS)

    readers = [threading.Thread(target=answer) for _ in range(3)]
    for thread in readers:
        thread.start()
    learn()
    over.set()
    for thread in readers:
        thread.join()
    assert not wrong


SCRIPT = """
import multiprocessing, sys
import numpy as np
from partwise import Classifier

X, Y = np.arange(24.0).reshape(8, 3) % 5, [0, 1, 2, 0, 1, 2, 0, 1]

def work(seed):
    return Classifier(solver="dca", max_epochs=3, random_state=seed, n_jobs=2).fit(X, Y).weights_.tolist()

if __name__ == "__main__":
    here = [work(seed) for seed in range(3)]  # threads have run before processes are forked
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        assert pool.map(work, range(3)) == here
    print("same")
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("interpreted", ["1", "0"])
@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_processes_however_they_are_made(how, interpreted, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PARTWISE_INTERPRET": interpreted}
    words = [sys.executable, "-W", "ignore::DeprecationWarning", str(tmp_path / "script.py"), how]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=environment)
    assert done.stdout == "same\n", done.stderr[-1000:]


@pytest.mark.slow
def test_two_processes_that_train_to_one_file(tmp_path):
    task = next(task for task in TASKS if task.verb == "tag")
    data = str(task.command.workload(tmp_path))

    def start(seed, out):
        words = ["train", "tag", data, "-o", str(tmp_path / out), "-q", "--seed", str(seed), "--epochs", "40", "--tol", "0"]
        words += ["--solver", "dca", "--checkpoint-every", "0.0001"]
        return subprocess.Popen(
            [sys.executable, "-m", "partwise", *words],
            env={**os.environ, "PARTWISE_INTERPRET": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )

    alone = []
    for seed in (0, 1):
        assert start(seed, "alone").wait() == 0
        alone.append((tmp_path / "alone").read_bytes())
    both = [start(seed, "shared") for seed in (0, 1)]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert alone[0] != alone[1] and (tmp_path / "shared").read_bytes() in alone
    assert {path.name for path in tmp_path.iterdir()} <= {"chunks.txt", "alone", "shared", "shared.checkpoint"}


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["predict", "pack"])
def test_two_processes_that_write_to_one_place(verb, tmp_path):
    """Answers are one's or the other's; of two that pack, one is refused or finds the work done."""
    task = next(task for task in TASKS if task.verb == "tag")
    data = str(task.command.workload(tmp_path))
    golden_files.run(["train", "tag", data, "-o", str(tmp_path / "model"), "-q", "--epochs", "2"])

    def start(out):
        words = ["predict", str(tmp_path / "model"), data, "-q"] if verb == "predict" else ["pack", "tag", data]
        environment = {**os.environ, "PARTWISE_INTERPRET": "1"}
        command = [sys.executable, "-m", "partwise", *words, "-o", str(tmp_path / out)]
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)

    def content(path):
        return {one.name: one.read_bytes() for one in path.iterdir()} if path.is_dir() else path.read_bytes()

    assert start("alone").wait() == 0
    both = [start("shared") for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    assert content(tmp_path / "shared") == content(tmp_path / "alone")
    for process, words in zip(both, said, strict=True):
        assert process.returncode == 0 or (verb == "pack" and "partwise: error: " in words and "Traceback" not in words), said
    assert 0 in [process.returncode for process in both]
