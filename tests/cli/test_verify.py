"""``partwise verify``: what is whole, what is damaged, and what is none of ours."""

import hashlib
import json

import pytest
from typer.testing import CliRunner

import golden_files
from partwise.cli.app import app


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_models_of_every_version(tmp_path):
    old = golden_files.unpack("classifier-crf-l1", tmp_path / "old")
    told = json.loads(run("verify", old, "--json").stdout)
    assert told["format_version"] < 4 and not told["sealed"] and told["estimator"] == "Classifier"
    assert told["sha256"] == hashlib.sha256(old.read_bytes()).hexdigest() and told["bytes"] == old.stat().st_size
    assert run("shrink", old, "-o", tmp_path / "new", "-q").exit_code == 0
    told = json.loads(run("verify", tmp_path / "new", "--json").stdout)
    assert told["format_version"] == 4 and told["sealed"]
    assert "header and tensors" in run("verify", tmp_path / "new").stdout


@pytest.mark.parametrize("where", [3, 40, 200, -1])
def test_damaged_files_end_with_status_1(where, tmp_path):
    path = golden_files.unpack("classifier-crf-l1", tmp_path / "m")
    run("shrink", path, "-o", tmp_path / "n", "-q")
    raw = bytearray((tmp_path / "n").read_bytes())
    raw[where] ^= 4
    (tmp_path / "n").write_bytes(raw)
    said = run("verify", tmp_path / "n")
    assert said.exit_code == 1 and "partwise: error:" in said.output and "Traceback" not in said.output


def test_what_is_none_of_ours(tmp_path):
    (tmp_path / "text").write_text("hello")
    assert run("verify", tmp_path / "text").exit_code == 1
    assert "There is no file" in run("verify", tmp_path / "nothing").output


def test_packed_corpora_shard_by_shard(tmp_path):
    (tmp_path / "text").write_text("".join(f"a{k % 3} x{k % 2}\n\n" for k in range(50)))
    assert run("pack", "tag", tmp_path / "text", "-o", tmp_path / "packed", "-q").exit_code == 0
    told = json.loads(run("verify", tmp_path / "packed", "--json").stdout)
    assert (told["kind"], told["estimator"], told["examples"]) == ("packed corpus", "SequenceLabeler", 50)
    assert "packed corpus, SequenceLabeler, 50 examples in 1 shard" in run("verify", tmp_path / "packed").stdout
    raw = bytearray((tmp_path / "packed" / "main.gold.npy").read_bytes())
    raw[-1] ^= 1
    (tmp_path / "packed" / "main.gold.npy").write_bytes(raw)
    said = run("verify", tmp_path / "packed")
    assert said.exit_code == 1 and "shard 0" in said.output and "checksum" in said.output
