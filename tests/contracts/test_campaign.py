"""The campaign in small: what it found stays mended, and every fuzzer runs. ``make campaign`` does it in earnest."""

import gzip
import os
import signal
from pathlib import Path

import pytest

from campaign.models import Bits, Checkpoints, Models
from campaign.options import Options
from campaign.readers import READERS, SHOWN, CodeFiles, Readers
from partwise import ModelFileError
from partwise.tasks.common import model_file

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
    try:
        READERS[name.partition("-")[0]][1](data)
    except SHOWN as error:
        assert str(error)


@pytest.mark.parametrize(("kind", "n"), [(Bits, 73), (Models, 73), (Checkpoints, 25), (Readers, 260), (CodeFiles, 50)])
def test_every_fuzzer_runs(kind, n, tmp_path):
    fuzzer = kind()
    fuzzer.prepare(tmp_path)
    assert len({fuzzer.one(seed) for seed in range(n)}) >= 1


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
