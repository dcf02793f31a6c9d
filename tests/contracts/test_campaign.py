"""The campaign in small: what it found stays mended, and every fuzzer runs. ``make campaign`` does it in earnest."""

import gzip
import os
import signal
from pathlib import Path

import pytest

from campaign import guided, interruptions
from campaign.frames import Frames
from campaign.layers import Layers, is_here
from campaign.models import Bits, Checkpoints, Models
from campaign.options import Options
from campaign.packed import Packed
from campaign.readers import READERS, SHOWN, CodeFiles, Readers
from partwise import ModelFileError
from partwise.bridges.annotation_files import FORMATS
from partwise.tasks.common import model_file
from partwise.tasks.common.registry import TASKS

pytestmark = pytest.mark.interpreted

CORPUS = Path(__file__).parent.parent / "campaign" / "corpus"


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.iterdir()))
def test_what_was_found_ends_in_words(name, tmp_path):
    data = (CORPUS / name).read_bytes()
    if name.startswith("model-"):
        (tmp_path / "m").write_bytes(gzip.decompress(data))
        with pytest.raises(ModelFileError):
            model_file.load(tmp_path / "m", plain=True)
        return
    reader = max((one for one in READERS if name.startswith(f"{one}-")), key=len)
    try:
        READERS[reader][1](data)
    except SHOWN as error:
        assert str(error)


@pytest.mark.parametrize(
    ("kind", "n"), [(Bits, 78), (Models, 78), (Checkpoints, 25), (Packed, 90), (Readers, 260), (CodeFiles, 50), (Frames, 64)]
)
def test_every_fuzzer_runs(kind, n, tmp_path):
    fuzzer = kind()
    fuzzer.prepare(tmp_path)
    assert len({fuzzer.one(seed) for seed in range(n)}) >= 1


@pytest.mark.skipif(not is_here(), reason="torch is not installed")
def test_layers_are_fuzzed(tmp_path):
    test_every_fuzzer_runs(Layers, 200, tmp_path)


def test_every_task_and_format_is_in_it(tmp_path):
    models, readers = Models(), Readers()
    models.prepare(tmp_path)
    readers.prepare(tmp_path)
    known = {header["estimator"] for _, header, *_ in models.seeds}
    assert known >= {task.estimator for task in TASKS}
    assert set(readers.names) >= {"crfpp-model", "factor-graphs", "decisions", "dictionary", *FORMATS[:4]}


@pytest.fixture
def processes(monkeypatch):
    """Processes that fuzzers start find them, too."""
    monkeypatch.setenv("PYTHONPATH", str(CORPUS.parent.parent))


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_kills(tmp_path):
    found = list(interruptions.run(0, 60.0, tmp_path))
    assert found and [wrong for _, wrong, _ in found if wrong] == []


@pytest.mark.slow
@pytest.mark.usefixtures("processes")
def test_the_fuzzer_that_follows_coverage(tmp_path):
    pytest.importorskip("atheris", reason="atheris is not installed")
    found = list(guided.run(0, 20.0, tmp_path))
    assert {kind for kind, _, _ in found} == {"readers", "headers"} and [wrong for _, wrong, _ in found if wrong] == []


@pytest.mark.slow
def test_command_lines(tmp_path):
    before, handlers = os.getcwd(), [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    fuzzer = Options()
    try:
        fuzzer.prepare(tmp_path)
        for seed in range(60):
            fuzzer.one(seed)
    finally:
        os.chdir(before)
    assert handlers == [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
