"""The model file: what goes in comes out, and nothing else is believed."""

import json
import os
import signal
import struct
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import numpy as np
import pytest

import partwise
from every_record import EVERY_LOSS, with_other_values
from partwise import Classifier, Family, ModelFileError, SequenceLabeler
from partwise.files.tensors import NO_DIGEST, SEAL, sealed
from partwise.files.whole_file import whole_file
from partwise.losses.records import Loss, Summed
from partwise.solvers import CCCP, SOLVERS
from partwise.tasks.common import model_file

pytestmark = pytest.mark.interpreted

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 3)), np.repeat(["a", "b", "c"], 10)
SEQUENCES = [[["w=x", "p=y"], ["w=é\ud800"]], [["w=z"]], []]
TAGS = [["A", "B"], ["A"], []]


@pytest.fixture(scope="module")
def classifier():
    return Classifier(solver="dca", max_epochs=3, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def labeler():
    return SequenceLabeler(solver="dca", max_epochs=3, random_state=0).fit(SEQUENCES, TAGS)


def test_classifier_comes_back(classifier, tmp_path):
    classifier.save(tmp_path / "model")
    for loaded in (partwise.load(tmp_path / "model"), Classifier.load(str(tmp_path / "model"))):
        np.testing.assert_array_equal(loaded.decision_function(X), classifier.decision_function(X))
        assert loaded.get_params() == classifier.get_params() and loaded.classes_.dtype == classifier.classes_.dtype
        assert loaded.n_features_in_ == 3 and loaded.solver_ == "dca" and loaded.temperature_ is None
        loaded.partial_fit(X, Y)
        assert (loaded.weights_ != classifier.weights_).any()
        loaded.fit(X, Y)
        np.testing.assert_array_equal(loaded.weights_, classifier.weights_)
    with pytest.raises(ModelFileError, match="holds a Classifier, not a SequenceLabeler"):
        SequenceLabeler.load(tmp_path / "model")


def test_labeler_comes_back(labeler, tmp_path):
    labeler.save(tmp_path / "model")
    loaded = partwise.load(tmp_path / "model")
    assert loaded.vocabulary_ == labeler.vocabulary_ and list(loaded.vocabulary_) == list(labeler.vocabulary_)
    assert loaded.predict(SEQUENCES) == labeler.predict(SEQUENCES)
    np.testing.assert_array_equal(loaded.decision_value(SEQUENCES), labeler.decision_value(SEQUENCES))
    n = loaded.n_features_in_
    loaded.partial_fit([[["new"]]], [["A"]])
    assert loaded.n_features_in_ == n + 1


def test_float32_comes_back_as_float32(tmp_path):
    Classifier(solver="dca", max_epochs=1, dtype="float32").fit(X, Y).save(tmp_path / "model")
    assert partwise.load(tmp_path / "model").decision_function(X).dtype == np.float32


def test_calibration_and_feature_names_come_back(classifier, tmp_path):
    import copy

    calibrated = copy.deepcopy(classifier).calibrate(X, Y)
    calibrated.feature_names_in_ = np.array(["u", "v", "é"], object)
    calibrated.save(tmp_path / "model")
    loaded = partwise.load(tmp_path / "model")
    assert loaded.temperature_ == calibrated.temperature_ and loaded.feature_names_in_.tolist() == ["u", "v", "é"]


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b\0", "\ud800"],
        [1, 2**80],
        [None, ("B", 1), (("x",), None)],
        [True, "yes"],
        [0.1, -2.5],
        [np.float32(0.1), np.float32(2)],
        [np.int8(3), "three", np.str_("drei")],
        ["x" * 2000, "y"],
    ],
)
def test_labels_of_every_type_come_back_exactly(labels, tmp_path):
    x, y = [[["t"]] * len(labels)], [labels]
    fitted = SequenceLabeler(solver="dca", max_epochs=1).fit(x, y)
    fitted.save(tmp_path / "model")
    loaded = partwise.load(tmp_path / "model")
    assert loaded.classes_.dtype == fitted.classes_.dtype
    assert list(map(repr, loaded.classes_.tolist())) == list(map(repr, fitted.classes_.tolist()))


def test_parameters_of_every_kind_come_back(tmp_path):
    given = {
        "loss": Family(float("inf"), 2.0),
        "solver": SOLVERS["dca"](average=False),
        "cost": {("A", "B"): 2.0},
        "constraints": [(None, "B")],
        "class_weight": {"A": 2.0},
        "random_state": 7,
        "dtype": "float64",
    }
    SequenceLabeler(max_epochs=1, **given).fit(SEQUENCES, TAGS).save(tmp_path / "model")
    loaded = partwise.load(tmp_path / "model").get_params()
    assert {key: loaded[key] for key in given} == given
    Classifier(cost=1 - np.eye(3), solver="dca", max_epochs=1, dtype=np.float32).fit(X, Y).save(tmp_path / "model")
    loaded = partwise.load(tmp_path / "model")
    assert (loaded.cost == 1 - np.eye(3)).all() and loaded.dtype == "float32"


def subclasses(kind):
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def test_every_loss_and_every_solver_comes_back():
    assert {type(loss) for loss in EVERY_LOSS} == {
        kind for kind in subclasses(Loss) if kind.__module__.startswith("partwise.losses")
    }
    solvers = [with_other_values(kind) for kind in SOLVERS.values()]
    around = [CCCP(s, epochs=3) for s in solvers if s.takes != "differences"] + [CCCP(epochs=np.int64(4)), CCCP()]
    for value in [*EVERY_LOSS, *solvers, *around]:
        again = model_file.from_json(json.loads(json.dumps(model_file.to_json(value, "It"))))
        assert type(again) is type(value) and again == value and repr(again) == repr(value)


def test_a_summed_error_of_another_margin_comes_back(tmp_path):
    fitted = Classifier(loss=Summed(2.0)).fit(X, Y)
    fitted.save(tmp_path / "model")
    loaded = partwise.load(tmp_path / "model")
    assert loaded.loss == Summed(2.0)
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))


def test_callbacks_are_not_saved(tmp_path):
    Classifier(solver="dca", max_epochs=1, callbacks=print, random_state=np.random.RandomState(0)).fit(X, Y).save(
        tmp_path / "model"
    )
    loaded = partwise.load(tmp_path / "model")
    assert loaded.callbacks is None and loaded.random_state is None


def test_what_cannot_be_kept_is_refused_before_anything_is_written(tmp_path):
    class Odd:
        def __repr__(self):
            return "<odd>"

    odd = Odd()
    fitted = SequenceLabeler(solver="dca", max_epochs=1).fit([[["a"], ["b"]]], [[odd, "x"]])
    with pytest.raises(
        ModelFileError, match="labels holds <odd> of type Odd, which cannot be kept in a model file. What can: strings"
    ):
        fitted.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


# ---------------------------------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_failed_write_leaves_the_old_file(classifier, tmp_path, monkeypatch, unnamed):
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "model"
    classifier.save(path)
    old = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        classifier.save(path)
    assert path.read_bytes() == old and os.listdir(tmp_path) == ["model"]
    monkeypatch.undo()
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path.write_bytes(b"something else")
    classifier.save(path)
    assert path.read_bytes() == old and os.listdir(tmp_path) == ["model"]


def test_a_bare_chroot_in_which_open_files_have_no_names(tmp_path, monkeypatch):
    link = os.link

    def missing(source, *words, **more):
        if str(source).startswith("/proc"):
            raise FileNotFoundError(2, "No such file or directory", source)
        return link(source, *words, **more)

    monkeypatch.setattr(os, "link", missing)
    monkeypatch.setattr(os.path, "isdir", lambda path: path != "/proc/self/fd" and Path(path).is_dir())
    with whole_file(tmp_path / "file") as file:
        file.write(b"new")
    assert (tmp_path / "file").read_bytes() == b"new" and os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="unnamed files are a thing of Linux")
def test_a_kill_while_writing_leaves_no_trace(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    code = f"""
        import os, signal
        from partwise.files.whole_file import whole_file
        os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)
        with whole_file({str(path)!r}) as file:
            file.write(b"new")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["model"]


def test_where_it_cannot_be_written(classifier, tmp_path):
    with pytest.raises(ModelFileError, match="is a folder; give the name of a file"):
        classifier.save(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        classifier.save(tmp_path / "nowhere" / "model")


# ---------------------------------------------------------------------------------------------------------------------
# Reading what is damaged or hostile
# ---------------------------------------------------------------------------------------------------------------------


def parts(path):
    """Header of the safetensors file, our own header in it, and the bytes of the tensors."""
    raw = path.read_bytes()
    (n,) = struct.unpack("<Q", raw[:8])
    outer = json.loads(raw[8 : 8 + n])
    return outer, json.loads(outer["__metadata__"]["partwise"]), raw[8 + n :]


def put(path, outer, inner, body):
    if inner is not None:
        inner = inner if isinstance(inner, str) else json.dumps(inner)
        outer = {**outer, "__metadata__": {"partwise": inner, SEAL: NO_DIGEST}}
    path.write_bytes(sealed(outer) + body)


@pytest.fixture
def saved(labeler, tmp_path):
    path = tmp_path / "a model.partwise"
    labeler.save(path)
    return path


def refused(path, match):
    with pytest.raises(ModelFileError, match=match) as caught:
        partwise.load(path)
    assert path.name in str(caught.value)


def test_truncated(saved):
    raw = saved.read_bytes()
    for n in (0, 4, 100, len(raw) // 2, len(raw) - 1):
        saved.write_bytes(raw[:n])
        refused(saved, "is not a partwise model, or is truncated or damaged")


def test_longer_than_it_says(saved):
    saved.write_bytes(saved.read_bytes() + b"more")
    refused(saved, "truncated or damaged")


def test_not_a_model(saved):
    for content in (b"hello", b"\x80\x04K\x01.", os.urandom(5000), struct.pack("<Q", 2**60) + b"{}"):
        saved.write_bytes(content)
        refused(saved, "is not a partwise model")
    put(saved, {}, None, b"")
    refused(saved, "is a safetensors file, but not a partwise model")
    with pytest.raises(FileNotFoundError, match="There is no model file"):
        partwise.load(saved.parent / "absent")
    with pytest.raises(ModelFileError, match="cannot be read|not a partwise model"):
        partwise.load(saved.parent)


def test_every_flipped_byte_of_a_tensor_is_noticed(saved):
    outer, inner, body = parts(saved)
    for k in range(0, len(body), 7):
        put(saved, outer, inner, body[:k] + bytes([body[k] ^ 0x10]) + body[k + 1 :])
        refused(saved, "is damaged: the checksum of")


def test_every_flipped_bit_of_the_header_is_noticed(saved):
    raw = saved.read_bytes()
    n = 8 + int.from_bytes(raw[:8], "little")
    for k in range(n):
        saved.write_bytes(raw[:k] + bytes([raw[k] ^ 1 << k % 8]) + raw[k + 1 :])
        refused(saved, "damaged|not a partwise model|Upgrade")


def test_a_header_without_its_digest(saved):
    outer, inner, body = parts(saved)
    outer["__metadata__"] = {"partwise": json.dumps(inner)}
    put(saved, outer, None, body)
    refused(saved, "there is no digest of its header")
    outer["__metadata__"] = {"partwise": json.dumps({**inner, "format_version": 3})}
    put(saved, outer, None, body)  # earlier versions had none
    partwise.load(saved)


def test_newer_version(saved):
    outer, inner, body = parts(saved)
    put(saved, outer, {**inner, "format_version": 99, "partwise_version": "9.9"}, body)
    refused(saved, r"written by partwise 9.9 in format version 99; .* Upgrade with: pip install --upgrade partwise")


def test_a_header_cannot_claim_what_is_not_there(saved):
    outer, inner, body = parts(saved)
    huge = {**outer, "weights": {**outer["weights"], "shape": [2**40]}}
    put(saved, huge, inner, body)
    refused(saved, "truncated or damaged")


def altered(inner, *path, value):
    inner = json.loads(json.dumps(inner))
    node = inner
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return inner


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format_version",), "one"),
        (("format",), "other"),
        (("estimator",), "os.system"),
        (("crc32",), {}),
        (("crc32",), None),
        (("parameters",), []),
        (("parameters", "C"), -1),
        (("parameters", "loss"), "sinister"),
        (("parameters", "solver"), {"solver": ["os.system", {"dict": []}]}),
        (("parameters", "solver"), {"solver": ["dca", {"dict": [["command", "rm"]]}]}),
        (("parameters", "order"), 2),
        (("parameters", "order"), 10**9),
        (("parameters", "surprise"), 1),
        (("model",), None),
        (("model", "n_features"), 10**12),
        (("model", "n_features"), -1),
        (("model", "n_features"), True),
        (("model", "labels"), {"array": ["<U1", ["A"]]}),
        (("model", "labels"), {"array": ["<U1", ["A", "A"]]}),
        (("model", "labels"), {"array": ["|O", ["A", {"eval": "print()"}]]}),
        (("model", "labels"), {"array": ["V100000000", ["A", "B"]]}),
        (("model", "labels"), ["A", "B"]),
        (("model", "labels"), {"array": ["<U1", [[["deep"]], "B"]]}),
        (("model", "temperature"), "warm"),
        (("model", "temperature"), -1.0),
        (("model", "tokens"), "matrix of doom"),
        (("model", "tokens"), 3),
        (("model", "solver"), None),
    ],
)
def test_altered_headers(saved, path, value):
    outer, inner, body = parts(saved)
    put(saved, outer, altered(inner, *path, value=value), body)
    refused(saved, "damaged or was altered|not a partwise model|Upgrade with")


def test_headers_that_are_not_json(saved):
    outer, inner, body = parts(saved)
    put(saved, outer, "{not json", body)
    refused(saved, "its header is not JSON")
    put(saved, outer, altered(inner, "parameters", "C", value=0).__repr__(), body)
    refused(saved, "its header is not JSON")
    put(saved, outer, '{"format": "partwise-model", "format_version": ' + "[" * 100_000, body)
    refused(saved, "its header is not JSON")


def rewritten(path, change):
    """Tensors changed, checksums right: what a forger would do."""
    from safetensors.numpy import load_file, save

    _, inner, _ = parts(path)
    tensors = change(load_file(path))
    inner["crc32"] = {key: zlib.crc32(np.ascontiguousarray(value)) for key, value in tensors.items()}
    path.write_bytes(save(tensors))
    (n,) = struct.unpack("<Q", path.read_bytes()[:8])
    put(path, json.loads(path.read_bytes()[8 : 8 + n]), inner, path.read_bytes()[8 + n :])


@pytest.mark.parametrize(
    "change",
    [
        lambda t: {**t, "weights": t["weights"][:-1]},
        lambda t: {**t, "weights": t["weights"] * np.nan},
        lambda t: {**t, "weights": t["weights"].astype(np.int64)},
        lambda t: {**t, "weights": t["weights"][None]},
        lambda t: {key: value for key, value in t.items() if key != "weights"},
        lambda t: {key: value for key, value in t.items() if key != "vocabulary_offsets"},
        lambda t: {key: value for key, value in t.items() if not key.startswith("vocabulary")},
        lambda t: {**t, "vocabulary_offsets": t["vocabulary_offsets"][::-1].copy()},
        lambda t: {**t, "vocabulary_offsets": t["vocabulary_offsets"] + 10**9},
        lambda t: {**t, "vocabulary_offsets": np.array([0, 10**9, -(10**9), 1, t["vocabulary"].size])},
        lambda t: {**t, "vocabulary": np.full_like(t["vocabulary"], 255)},
        lambda t: {**t, "vocabulary": t["vocabulary"].astype(np.int32)},
    ],
)
def test_forged_tensors(saved, change):
    rewritten(saved, change)
    refused(saved, "damaged or was altered")
