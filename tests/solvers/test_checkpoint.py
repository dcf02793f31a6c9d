"""Checkpoints: what does not fit the run is refused with a message; none of it reaches a compiled loop."""

import copy
import errno
import warnings

import numpy as np
import pytest

from partwise.files.tensors import ModelFileError, read_tensors, write_tensors
from partwise.losses.records import LOSSES
from partwise.solvers import CCCP, SOLVERS, checkpoint, make_task
from partwise.solvers.checkpoint import FORMAT, VERSION, Checkpoint
from partwise.solvers.loop import run
from partwise.solvers.out_of_fold import OutOfFold
from partwise.structures import multiclass_problem

pytestmark = pytest.mark.interpreted

RNG = np.random.default_rng(0)
PROBLEM = multiclass_problem(RNG.normal(size=(12, 4)), RNG.integers(0, 3, 12))
LOSS = {"cccp": "ramp", "out_of_fold": "ramp", "perceptron": "perceptron", "sdcd": "summed", "lse_cutting_plane": "summed"}
LOSS |= dict.fromkeys(("lbfgs", "owlqn", "eg"), "crf")
EVERY = {name: make() for name, make in SOLVERS.items()} | {"cccp": CCCP(SOLVERS["sdm"]()), "out_of_fold": OutOfFold()}


MAY_BE_MISSING = ("gradient", "pseudo", "slope", "state.best", "contradicted", "slots")  #: at first they are


def task_of(name):
    l1 = {"l1_ratio": 0.5} if name in ("owlqn", "admm") else {}
    return make_task(PROBLEM, LOSSES[LOSS.get(name, "hinge")], 0.3, **l1)


QUICK = ("dca", "lbfgs", "bcfw", "bmrm", "out_of_fold")


@pytest.fixture(params=[name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in EVERY])
def kept(request, tmp_path):
    """A solver, its task, and the checkpoint of its third epoch."""
    solver, task = EVERY[request.param], task_of(request.param)
    followed = Checkpoint(tmp_path / "run", 0.0)
    followed.load(solver, task)
    run(solver, task, max_epochs=3, tol=0.0, callbacks=[followed.save])
    return solver, task, tmp_path / "run"


def spoilt(header, tensors):
    """Changes, one after the other, each of which should be noticed: what they are, a header, tensors."""
    yield "nothing", header, {}
    for name, array in tensors.items():
        rest = {key: value for key, value in tensors.items() if key != name}
        if (array.size or array.ndim != 1) and not name.endswith(MAY_BE_MISSING):
            yield f"no {name}", header, rest
        if array.size or array.ndim != 1:
            yield f"{name} of another type", header, {**tensors, name: np.zeros(array.shape, np.float16)}
            yield f"{name} with another axis", header, {**tensors, name: array[None]}
        if array.size > 1:
            yield f"{name} cut", header, {**tensors, name: array.reshape(-1)[:1].reshape((1,) * array.ndim)}
    for name, text in header["numbers"].items():
        wrong = copy.deepcopy(header)
        wrong["numbers"][name] = "3" if text in ("True", "False") or "." in text else "True"
        yield f"{name} of another type", wrong, tensors
        del wrong["numbers"][name]
        yield f"no {name}", wrong, tensors
    yield "too many", header, {**tensors, "state.surprise": np.zeros(3)}
    yield "a history of nonsense", {**header, "history": [["one"]]}, tensors
    yield "no history", {key: value for key, value in header.items() if key != "history"}, tensors


def test_every_tensor_and_number_is_compared_with_a_fresh_state(kept):
    solver, task, path = kept
    header, tensors = read_tensors(str(path), FORMAT, VERSION)
    tensors = {key: np.array(array) for key, array in tensors.items()}
    for what, changed, arrays in spoilt(header, tensors):
        if what.endswith("memory.slots cut"):
            continue  # a shorter memory is a memory
        write_tensors(path, changed, arrays)
        try:
            Checkpoint(path, 0.0).load(solver, task)
        except ModelFileError as error:
            assert "damaged or was altered" in str(error) and "Remove it" in str(error)
        else:
            raise AssertionError(f"{solver.name}: {what}: was not noticed")


@pytest.mark.parametrize("name", ["sdm", "bcfw", "oneslack", "bmrm", "lbfgs", "lse_cutting_plane", "cccp", "kelley"])
def test_places_that_are_not_there(name, tmp_path):
    """Numbers that say where something is, beyond the end or negative."""
    solver, task, path = EVERY[name], task_of(name), tmp_path / "run"
    followed = Checkpoint(path, 0.0)
    followed.load(solver, task)
    run(solver, task, max_epochs=3, tol=0.0, callbacks=[followed.save])
    header, tensors = read_tensors(str(path), FORMAT, VERSION)
    tensors = {key: np.array(array) for key, array in tensors.items()}
    inside = ("head", "spare", "used", "where", "starts", "slots", "size", "square", "room")
    for key in [key for key in tensors if key.endswith(inside) and tensors[key].size and "cache.used" not in key]:
        for wrong in (10**6, 2**62, -(10**6)):
            changed = {**tensors, key: np.array(tensors[key])}
            changed[key].reshape(-1)[-1 if not key.endswith("where") else 1] = wrong
            if key.endswith(("head", "spare")) and wrong < 0:
                continue  # the end of a list
            write_tensors(path, header, changed)
            with pytest.raises(ModelFileError, match="damaged or was altered"):
                Checkpoint(path, 0.0).load(solver, task)
    for key in [key for key in header["numbers"] if "cuts." in key and key.endswith(("n", "anchor", "_end", ".d"))]:
        write_tensors(path, {**header, "numbers": {**header["numbers"], key: "1000000"}}, tensors)
        with pytest.raises(ModelFileError, match="damaged or was altered"):
            Checkpoint(path, 0.0).load(solver, task)


@pytest.mark.parametrize("name", ["sdm", "bcfw", "dca", "oneslack", "cccp"])
def test_outputs_that_are_none(name, tmp_path):
    """Labels that are not there, in outputs that are kept: loops would look their weights up."""
    solver, task, path = EVERY[name], task_of(name), tmp_path / "run"
    followed = Checkpoint(path, 0.0)
    followed.load(solver, task)
    run(solver, task, max_epochs=3, tol=0.0, callbacks=[followed.save])
    header, tensors = read_tensors(str(path), FORMAT, VERSION)
    tensors = {key: np.array(array) for key, array in tensors.items()}
    kept = [key for key in tensors if key.endswith((".outputs", ".targets")) and tensors[key].size]
    for key in kept:
        for wrong in (10**6, -(10**6)):
            changed = {**tensors, key: np.full_like(tensors[key], wrong)}
            write_tensors(path, header, changed)
            with pytest.raises(ModelFileError, match="damaged or was altered: targets has numbers"):
                Checkpoint(path, 0.0).load(solver, task)
    assert kept or name == "dca"


def test_lists_that_go_round_in_circles_end(tmp_path):
    solver, task, path = EVERY["sdm"], task_of("sdm"), tmp_path / "run"
    followed = Checkpoint(path, 0.0)
    followed.load(solver, task)
    run(solver, task, max_epochs=3, tol=0.0, callbacks=[followed.save])
    header, tensors = read_tensors(str(path), FORMAT, VERSION)
    tensors = {key: np.array(array) for key, array in tensors.items()}
    head = tensors["state.sets.head"]
    tensors["state.sets.next"][head[0]] = head[0]
    write_tensors(path, header, tensors)
    with pytest.raises(ModelFileError, match="points at what is not there"):
        Checkpoint(path, 0.0).load(solver, task)


def test_a_full_disk_does_not_end_the_training(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "run")

    solver, task = EVERY["dca"], task_of("dca")
    followed = Checkpoint(tmp_path / "run", 0.0)
    followed.load(solver, task)
    monkeypatch.setattr(checkpoint, "write_tensors", full)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = run(solver, task, max_epochs=5, tol=0.0, callbacks=[followed.save])
    assert [str(one.message) for one in said] == [
        "No checkpoint: [Errno 28] No space left on device: 'run'. Training goes on; it is tried again."
    ]
    assert found.n_epochs == 5 and not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore")
def test_scales_that_no_square_holds_are_infinite(tmp_path):
    """Numbers that are no places may be anything; the run says that it went astray, in words."""
    solver, task, path = EVERY["pegasos"], task_of("pegasos"), tmp_path / "run"
    followed = Checkpoint(path, 0.0)
    followed.load(solver, task)
    run(solver, task, max_epochs=3, tol=0.0, callbacks=[followed.save])
    header, tensors = read_tensors(str(path), FORMAT, VERSION)
    tensors = {key: np.array(array) for key, array in tensors.items()}
    for wrong in (1e200, 1e308, np.inf, np.nan):
        tensors["state.weights.numbers"][0] = wrong
        header["numbers"]["state.radius"] = "1e308"  # of the ball that they would be brought back to
        write_tensors(path, header, tensors)
        try:
            found = Checkpoint(path, 0.0).load(solver, task)
            run(solver, task, max_epochs=5, tol=0.0, resume=found, evaluate="never")
        except (ValueError, FloatingPointError) as error:
            assert str(error)
