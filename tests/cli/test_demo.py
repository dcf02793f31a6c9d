"""The demo and the examples: what a newcomer runs first must run."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from conftest import without_matplotlib
from partwise import kernels
from partwise.cli import demo as demo_module
from partwise.cli import demo_pictures
from partwise.cli.app import app
from partwise.solvers import solve

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def small(monkeypatch):
    """The demo in small."""
    monkeypatch.setattr(demo_module, "SIZES", (20, 60))
    monkeypatch.setattr(demo_module, "TEST_WORDS", 40)


def test_the_demo_reads_words_better_with_a_grammar_and_draws_pictures(small, tmp_path):
    run = CliRunner().invoke(app, ["demo", "--json", "--output", str(tmp_path)], catch_exceptions=False)
    assert run.exit_code == 0
    result = json.loads(run.stdout)
    single, svm, crf = result["readers"]
    assert svm["letter_accuracy"] > single["letter_accuracy"] + 0.03
    assert crf["letter_accuracy"] > single["letter_accuracy"] + 0.03
    assert single["learning_curve"].keys() == {"20", "60"}
    assert [Path(f).name for f in result["files"]] == ["learning_curve.png", "misread_word.png"]
    assert all(Path(f).read_bytes().startswith(b"\x89PNG") for f in result["files"])
    assert "chain CRF" in run.stderr


def test_the_demo_without_matplotlib_says_what_to_install_and_draws_in_characters(small, tmp_path, monkeypatch):
    without_matplotlib(monkeypatch)
    run = CliRunner().invoke(app, ["demo", "--output", str(tmp_path / "out")], catch_exceptions=False)
    assert run.exit_code == 0
    assert 'pip install "partwise[plot]"' in run.output.replace("\n", " ")
    assert "truth" in run.output and "@@" in run.output
    assert not (tmp_path / "out").exists()


def test_the_picture_in_characters_brackets_mistakes():
    word = np.zeros((2, 64))
    word[1, :8] = 1.0
    text = demo_pictures.as_text(word, [3, 8], [("one", [3, 3]), ("other", [3, 8])]).splitlines()
    assert text[0].endswith("@" * 16) and "@" not in text[1]
    assert text[9].split() == ["truth", "3", "8"]
    assert text[10].split() == ["one", "3", "[3]"]
    assert text[11].split() == ["other", "3", "8"]
    narrow = demo_pictures.as_text(word, [3, 8], [("one", [3, 3]), ("other", [3, 8])], width=30).splitlines()
    assert [line.split() for line in narrow if line.startswith("one")] == [["one", "3"], ["one", "[3]"]]
    assert max(map(len, narrow[:-1])) <= 30


def test_the_word_shown_is_one_that_only_single_letters_misread():
    truth = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    readings = ([[0, 0, 0], [4, 0, 0], [7, 8, 0]], [[1, 2, 0], [4, 5, 6], [7, 8, 9]], [[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    contestants = [demo_module.DigitReader(str(k), "hinge", True, readings=list(r)) for k, r in enumerate(readings)]
    assert demo_module.most_telling_word(contestants, truth) == 1


def load_example(name, monkeypatch):
    spec = importlib.util.spec_from_file_location(f"partwise_example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # numba and the disk cache look the module up by name
    spec.loader.exec_module(module)
    return module


def test_the_structure_of_the_tutorial_agrees_with_enumeration(monkeypatch):
    example = load_example("first_structure", monkeypatch)
    problem = example.make_documents(4, n_features=3, n_topics=5, m=2)
    rng = np.random.default_rng(0)
    for i in range(4):
        w = rng.normal(size=kernels.n_weights(problem)) * 10.0**i
        theta, parts, y = np.zeros(5), np.zeros(5), np.zeros(2, np.int32)
        kernels.score(problem, i, w, theta)
        every = list(kernels.outputs(problem, i))
        assert len(every) == 10
        for output in every:
            features = np.zeros(len(w))
            kernels.add_features(problem, i, output, 1.0, features)
            assert kernels.value_of(problem, i, theta, output) == pytest.approx(w @ features)
            augmented = theta.copy()
            kernels.add_cost(problem, i, 1.0, augmented)
            with_cost = kernels.value_of(problem, i, theta, output) + kernels.cost(problem, i, output)
            assert kernels.value_of(problem, i, augmented, output) == pytest.approx(with_cost)
        assert kernels.cost(problem, i, kernels.target(problem, i)) == 0
        values = np.array([kernels.value_of(problem, i, theta, output) for output in every])
        assert kernels.best(problem, i, theta, y) == pytest.approx(values.max())
        assert kernels.value_of(problem, i, theta, y) == pytest.approx(values.max())
        p = np.exp(values - values.max())
        assert kernels.expected(problem, i, theta, parts) == pytest.approx(values.max() + np.log(p.sum()))
        brute = np.zeros(5)
        for output, q in zip(every, p / p.sum(), strict=True):
            kernels.indicate(problem, i, output, q, brute)
        np.testing.assert_allclose(parts, brute, atol=1e-9)


def test_the_structure_of_the_tutorial_learns_compiled_and_interpreted_alike(monkeypatch):
    example = load_example("first_structure", monkeypatch)
    train, test = example.make_documents(200, seed=1), example.make_documents(200, seed=2)
    compiled = solve(train, "hinge", "dca", C=0.1, max_epochs=3)
    assert example.exact_matches(test, compiled.w) > 0.5  # by chance: 1 in 15
    from partwise.engine.compilation import interpret

    with interpret():
        interpreted = solve(train, "hinge", "dca", C=0.1, max_epochs=3)
    np.testing.assert_allclose(compiled.w, interpreted.w, rtol=1e-9, atol=1e-12)


def test_a_missing_kernel_is_named(monkeypatch):
    example = load_example("first_structure", monkeypatch)
    with pytest.raises(TypeError, match="'kbest_mira' needs the kernel 'kbest'. TopicProblem does not implement"):
        solve(example.make_documents(3), "hinge", "kbest_mira")


def test_the_tagging_example_runs(monkeypatch, capsys):
    load_example("tag_sentences", monkeypatch).main()
    f1 = float(capsys.readouterr().out.split("F1 ")[1].split()[0])
    assert f1 > 0.5  # a third of the words say nothing about their label; python-crfsuite reaches 0.56 on the same data
