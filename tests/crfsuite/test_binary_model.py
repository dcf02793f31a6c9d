"""Models that CRFsuite has written."""

import numpy as np
import pytest

from partwise import ModelFileError
from partwise.crfsuite import CRF, pycrfsuite
from partwise.crfsuite.binary_model import read_crfsuite_model

pytestmark = pytest.mark.interpreted
theirs = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")

X = [[{"word": w, "é": 0.5} for w in words] for words in ("abab", "ba", "ccab", "a")]
Y = [list("XYXY"), list("YX"), list("ZZXY"), list("X")]


def written(path, algorithm, **params):
    trainer = theirs.Trainer(algorithm, {"max_iterations": 10, **params}, verbose=False)
    for xseq, yseq in zip(X, Y, strict=True):
        trainer.append(theirs.ItemSequence(xseq), yseq)
    trainer.train(path)
    tagger = theirs.Tagger()
    tagger.open(path)
    return tagger


@pytest.mark.parametrize("algorithm", ["lbfgs", "ap", "arow"])
def test_labels_and_probabilities_are_theirs(tmp_path, algorithm):
    path = str(tmp_path / "m")
    tagger = written(path, algorithm)
    labeler, own = read_crfsuite_model(path), pycrfsuite.Tagger().open(path)
    for xseq, yseq in zip(X, Y, strict=True):
        tagger.set(theirs.ItemSequence(xseq))
        assert labeler.predict([xseq])[0] == own.tag(xseq) == tagger.tag()
        expected = [[tagger.marginal(label, t) for label in labeler.classes_] for t in range(len(xseq))]
        np.testing.assert_allclose(labeler.predict_marginals([xseq])[0], expected, atol=1e-9)
        assert own.probability(yseq) == pytest.approx(tagger.probability(yseq))
    info, there = own.info(), tagger.info()
    assert info.transitions == pytest.approx({key: w for key, w in there.transitions.items() if w}, abs=1e-6)
    assert info.state_features == pytest.approx({key: w for key, w in there.state_features.items() if w}, abs=1e-6)
    labeler.save(tmp_path / "ours")
    assert pycrfsuite.Tagger().open(tmp_path / "ours").tag(X[0]) == tagger.tag(theirs.ItemSequence(X[0]))
    assert (CRF(model_filename=path).predict(X) == [tagger.tag(theirs.ItemSequence(x)) for x in X]).all()


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "m"
    written(str(path), "lbfgs")
    content = path.read_bytes()
    read_crfsuite_model(content)
    rng = np.random.default_rng(0)
    for n in [0, 3, 40, 47, *rng.integers(48, len(content), 30)]:
        with pytest.raises(ModelFileError, match="not a model of CRFsuite, or damaged"):
            read_crfsuite_model(content[:n])
    for at in rng.integers(0, len(content), 200).tolist():  # any byte: an error of ours, or a model
        broken = bytearray(content)
        broken[at] ^= 0xFF
        try:
            read_crfsuite_model(bytes(broken))
        except ModelFileError:
            pass


def test_sizes_that_no_memory_holds_are_said(tmp_path, monkeypatch):
    path = tmp_path / "m"
    written(str(path), "lbfgs")
    monkeypatch.setattr("partwise.engine.memory.available_memory", lambda: 100.0)
    with pytest.raises(MemoryError, match="A model of 3 labels and 4 features"):
        read_crfsuite_model(path.read_bytes())


@pytest.mark.parametrize("n", [1, 3])
def test_arow_is_theirs_step_by_step(tmp_path, n):
    """One sequence, so that nobody shuffles; labels in the order of the alphabet, so that ties are broken alike."""
    xseq, yseq = X[2], list("AABC")
    trainer = theirs.Trainer("arow", {"max_iterations": n, "feature.possible_states": True}, verbose=False)
    trainer.set_params({"feature.possible_transitions": True, "gamma": 2.0, "variance": 0.5})
    trainer.append(theirs.ItemSequence(xseq), yseq)
    trainer.train(str(tmp_path / "m"))
    tagger = theirs.Tagger()
    tagger.open(str(tmp_path / "m"))
    crf = CRF(algorithm="arow", max_iterations=n, gamma=2.0, variance=0.5).fit([xseq], [yseq])
    for here, there in (
        (crf.state_features_, tagger.info().state_features),
        (crf.transition_features_, tagger.info().transitions),
    ):
        assert here == pytest.approx({key: w for key, w in there.items() if w}, abs=1e-5) and here
