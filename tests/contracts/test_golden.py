"""Models and scripts that users have: files of earlier code load and answer as they did, commands print what they printed.

The golden files were made before the layout of the source changed (`make_golden`). A difference is a defect, or a change that was
decided and written down; never make the files anew to get rid of it.
"""

from __future__ import annotations

import importlib
import shlex
import warnings

import pytest

import golden_files
import partwise
from golden_files import about, ask, differences, from_json, read, run, unpack
from golden_functions import QUESTIONS, answer
from partwise import interpret

KINDS = sorted({name.partition("-")[0] for name in golden_files.models()})
NAMES = read("names")


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("kind", KINDS)
def test_old_models_answer_as_they_did(kind, tmp_path):
    with interpret():  # data are tiny, loops many
        assert wrong_answers(kind, tmp_path) == {}


@pytest.mark.parametrize("kind", [kind if kind == "classifier" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS])
def test_so_they_do_when_compiled(kind, tmp_path):
    assert wrong_answers(kind, tmp_path) == {}


def wrong_answers(kind, folder):
    names = [name for name in golden_files.models() if name.startswith(f"{kind}-")]
    return {name: found for name in names if (found := changed(name, folder))}


def changed(name, folder):
    """What the golden model `name` says otherwise than then."""
    golden = read(name)
    model = partwise.load(unpack(name, folder / name))
    inputs = {key: from_json(value) for key, value in golden["inputs"].items()}
    expected = {key: value for key, value in golden.items() if key not in ("rel", "inputs", "calls")}
    found = differences(about(model), expected, 0.0)
    for call in golden["calls"]:
        found += differences(ask(model, call, inputs), call["answer"], golden["rel"], call["call"])
    return found


@pytest.mark.parametrize("task", golden_files.tasks())
def test_old_commands_print_what_they_printed(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    golden = read(f"cli-{task}")
    for name, text in golden["files"].items():
        (tmp_path / name).write_text(text)
    with interpret():
        for step in golden["commands"]:
            words = shlex.split(step["command"])
            found = run(words)
            if "written" in step:
                found["written"] = (tmp_path / words[words.index("-o") + 1]).read_text()
            expected = {key: value for key, value in step.items() if key != "command"}
            assert differences(found, expected, 1e-6) == [], step["command"]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_functions_answer_as_they_did(question):
    with interpret():
        assert differences(answer(question), read("functions")[question.__name__], 1e-6) == []


@pytest.mark.parametrize("module", NAMES["facades"])
def test_public_names_are_there(module):
    found = importlib.import_module(module)
    assert [name for name in NAMES["facades"][module] if not hasattr(found, name)] == []
    assert set(NAMES["losses"]) <= set(partwise.LOSSES) and set(NAMES["solvers"]) <= set(partwise.SOLVERS)
