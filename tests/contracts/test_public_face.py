"""What ``import partwise`` gives, and what it costs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import partwise
from partwise.tasks.common.registry import TASKS
from partwise.text.columns import read_columns
from small_taggers import TEMPLATES, TEST, TRAIN

#: what reads command lines and draws for people; what trains; what belongs to others
FOR_PEOPLE = ("typer", "click", "rich", "pydantic", "jinja2", "matplotlib")
FOR_SCIENCE = ("sklearn", "scipy.sparse", "scipy.optimize", "scipy.linalg", "scipy.special", "scipy.stats", "safetensors")


def loaded(code, *argv):
    """Names of the modules that a new process has loaded after `code`."""
    told = f"import sys\n{code}\nsys.stderr.write(' '.join(sys.modules))"
    environment = {**os.environ, "PARTWISE_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", told, *argv], capture_output=True, text=True, check=True, env=environment)
    return set(done.stderr.split())


def test_import_loads_nothing_heavy():
    found = loaded("import partwise")
    assert not found & {"numba", "scipy", "numpy", "inspect", "dataclasses", *FOR_PEOPLE, *FOR_SCIENCE}
    assert {name for name in found if name.startswith("partwise")} == {"partwise", "partwise.files", "partwise.files.version"}


def test_the_command_line_says_what_it_can_do_at_once():
    assert not loaded("import partwise.cli.app") & {"numba", "scipy", "numpy", "rich", "pydantic", "matplotlib", *FOR_SCIENCE}


@pytest.mark.interpreted
def test_a_model_answers_without_what_trains_and_what_is_for_people(tmp_path):
    """Each of them takes longer to load than some thousand words to label."""
    model, text = tmp_path / "model", tmp_path / "text"
    partwise.SequenceLabeler(templates=TEMPLATES, max_epochs=1).fit(read_columns(TRAIN)).save(model)
    text.write_bytes(TEST)
    out = tmp_path / "out"
    for more in ([], ["--kbest", "2"]):  # of a tagger alone: all tasks are asked for their options
        found = loaded("from partwise.cli import main; main()", "predict", str(model), str(text), "-q", "-o", str(out), *more)
        assert out.read_bytes() and not found & {*FOR_PEOPLE, *FOR_SCIENCE}
        assert "numba" in found or "scipy" not in found
        packages = {".".join(name.split(".")[:3]) for name in found if name.startswith("partwise.")}
        assert not {name for name in packages if name.startswith("partwise.solvers")}
        out.unlink()
    assert not {f"partwise.tasks.{task.package}.estimator" for task in TASKS if task.verb != "tag"} & found


def test_no_estimator_imports_what_trains():
    found = loaded("from partwise.tasks.common.registry import TASKS\nfor task in TASKS: task.core, task.command")
    assert "partwise.tasks.folding.estimator" in found and "partwise.solvers" not in found
    assert not found & {*FOR_PEOPLE, *FOR_SCIENCE}


def test_every_name_is_there():
    for name in partwise.__all__:
        assert getattr(partwise, name) is not None
    assert set(partwise.__all__) <= set(dir(partwise))
    assert not hasattr(partwise, "nothing_of_the_kind")


def test_the_table_of_options_is_up_to_date():
    from partwise.cli.reference import page

    page_on_disk = Path(__file__).parent.parent.parent / "docs" / "command-line.md"
    assert page_on_disk.read_text() == page(), "run: python -m partwise.cli.reference > docs/command-line.md"
