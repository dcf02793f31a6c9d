"""What the blocks of Python on pages may take for granted: names and files, small enough for the interpreter."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np

from crfpp_binary import write_binary_model
from partwise import Classifier, SequenceLabeler
from partwise.datasets import make_sentences, make_tagged_sequences
from partwise.tasks.common.registry import BY_VERB


def sentences(n: int, seed: int) -> str:
    """A column file."""
    return "\n\n".join("\n".join(" ".join(token) for token in one) for one in make_sentences(n, seed=seed)) + "\n"


def copies(verb: str, folder: Path, *names: str) -> None:
    """The tiny file of a task under these names."""
    content = BY_VERB[verb].command.workload(folder).read_bytes()
    for name in names:
        (folder / name).write_bytes(content)


def tagging(folder: Path) -> dict[str, Any]:
    """Sequences, a fitted labeler, column files."""
    X, y = make_tagged_sequences(8, seed=0)
    X_test, y_test = make_tagged_sequences(6, seed=1)
    labeler = SequenceLabeler(max_epochs=2).fit(X, y)
    for name in ("train.txt.gz", "huge.txt.gz"):
        (folder / name).write_bytes(gzip.compress(sentences(12, 0).encode()))
    (folder / "train.txt").write_text(sentences(12, 0))
    for name in ("dev.txt", "test.txt"):
        (folder / name).write_text(sentences(6, 1))
    return {
        "X": X, "y": y, "X_train": X, "y_train": y, "X_test": X_test, "y_test": y_test, "labeler": labeler,
        "batches": [(X[:4], y[:4]), (X[4:], y[4:])], "labels": sorted({one for labels in y for one in labels}),
        "SequenceLabeler": SequenceLabeler, "Classifier": Classifier, "np": np,
    }  # fmt: skip


CRFPP = """version: 100
cost-factor: 1
maxid: 6
xsize: 2

B-NP
B-VP

U00:%x[0,0]
B

0 U00:He
2 B

0.5
-0.5
0.1
0.2
0.3
0.4
"""
WAPITI = "#mdl#2#1\n#rdr#1/0/0\n11:u:w=%x[0,0],\n#qrk#2\n4:B-NP,\n4:B-VP,\n#qrk#1\n8:u:w=said,\n1=0x1p-1\n"


def coming_from(folder: Path) -> dict[str, Any]:
    """Beside sequences, one of them alone and models: of CRF++, as text and binary, and of Wapiti."""
    (folder / "wapiti.txt").write_text(WAPITI)
    (folder / "model.txt").write_text(CRFPP)
    write_binary_model(CRFPP, folder / "model")
    found = tagging(folder)
    return found | {"xseq": found["X"][0], "yseq": found["y"][0]}


def metrics(folder: Path) -> dict[str, Any]:
    """Chunk labels: true, predicted, predicted by another."""
    y = [[token[2] for token in one] for one in make_sentences(10, seed=0)]
    rng = np.random.default_rng(0)
    blurred = [[[label if rng.random() < share else "O" for label in labels] for labels in y] for share in (0.9, 0.8)]
    X = [[[token[0]] for token in one] for one in make_sentences(10, seed=0)]
    found = tagging(folder) | {"X": X, "y": y, "y_test": y, "predicted": blurred[0], "predicted_by_another": blurred[1]}
    return found | {"grid": {"C": [0.1]}}


def latent(folder: Path) -> dict[str, Any]:
    """Two sentences of three words; four rows."""
    words = [[["the"], ["old"], ["man"]], [["the"], ["boats"], ["sink"]]]
    rows = np.random.default_rng(0).normal(size=(4, 3))
    more = {"sentences": words, "labels": [["D", "N", "V"], ["D", "N", "V"]], "rows": rows, "classes": ["a", "b", "a", "b"]}
    return {"SequenceLabeler": SequenceLabeler, "Classifier": Classifier, **more}


def ranking(folder: Path) -> dict[str, Any]:
    """Queries as arrays, as a frame, and as a file; what scikit-learn has for them."""
    import pandas
    import sklearn
    from sklearn.compose import make_column_transformer
    from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    copies("rank", folder, "train.txt", "vali.txt", "test.txt", "new.txt")
    X = np.random.default_rng(0).normal(size=(40, 3))
    y, groups = (X[:, 0] > 0).astype(int), np.repeat(np.arange(10), 4)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(qid=groups)
    found = {"X": X, "y": y, "groups": groups, "frame": frame, "features": ["a", "b", "c"], "sklearn": sklearn}
    tools = (make_column_transformer, GridSearchCV, GroupKFold, cross_val_score, make_pipeline, StandardScaler)
    return found | {tool.__name__: tool for tool in tools}


def solvers(folder: Path) -> dict[str, Any]:
    """A packed problem."""
    from partwise import multiclass_problem

    x = np.random.default_rng(0).normal(size=(12, 3))
    return {"problem": multiclass_problem(x, np.argmax(x, axis=1))}


def alignment(folder: Path) -> dict[str, Any]:
    """Aligned pairs over the letters of proteins, and two sequences that are not aligned."""
    (folder / "sequences.fasta").write_text(">a\nHEAGAWGHEE\n>b\nPAWHEAE\n")
    for name in ("pairs.tsv", "more.tsv", "test.tsv"):
        (folder / name).write_text("HEAGAWGHE-E\t--P-AW-HEAE\nPAWHEAE\tPGWHE-E\n")
    return {}


def folding(folder: Path) -> dict[str, Any]:
    """RNA."""
    copies("fold", folder, "train.fasta", "dev.fasta", "test.fasta", "new.fasta")
    return {}


def parsing(folder: Path) -> dict[str, Any]:
    """A treebank."""
    copies("parse", folder, "en-train.conllu", "en-dev.conllu", "en-test.conllu", "text.conllu")
    return {}


def trained(verb: str, file: Path, model: Path, *options: str) -> None:
    """A model of a file."""
    from typer.testing import CliRunner

    from partwise.cli.app import app

    ran = CliRunner().invoke(app, ["train", verb, str(file), "-o", str(model), "--epochs", "2", *options])
    assert ran.exit_code == 0, ran.output


def suspects(folder: Path) -> dict[str, Any]:
    """A file of each kind, with enough in it for five folds, and models of them."""
    files = {
        "parse": ("train.conllu", "parser"), "fold": ("rna.fasta", "folder"), "align": ("pairs.tsv", "aligner"),
        "constituency": ("train.mrg", "constituents"), "graph": ("graphs.jsonl", "graph"), "rank": ("queries.txt", "ranker"),
    }  # fmt: skip
    for verb, (name, model) in files.items():
        copies(verb, folder, name)
        text = (folder / name).read_text().rstrip("\n") + "\n"
        many = [text.replace("qid:", f"qid:{k}") for k in range(4)] if verb == "rank" else [text] * 4
        (folder / name).write_text(("\n" if verb == "parse" else "").join(many))
        trained(verb, folder / name, folder / f"{model}.model")
    (folder / "train.txt").write_text(sentences(12, 0))
    trained("tag", folder / "train.txt", folder / "model")
    return {}


def constituency(folder: Path) -> dict[str, Any]:
    """Trees."""
    copies("constituency", folder, "train.mrg", "dev.mrg", "test.mrg", "new.mrg")
    return {}


def graphs(folder: Path) -> dict[str, Any]:
    """Graphs to label, and factor graphs to solve."""
    copies("graph", folder, "train.jsonl", "dev.jsonl", "test.jsonl")
    (folder / "grid.uai").write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1.0 2.0 3.0 1.0\n")
    (folder / "parsing.fg").write_text("2\n1\n0.5\n-0.5\nXOR 2 1 2\n")
    return {}


def packed(folder: Path) -> dict[str, Any]:
    """Parts of a corpus."""
    for k, name in enumerate(("part-0.gz", "part-1.gz", "a.txt.gz", "b.txt.gz")):
        (folder / name).write_bytes(gzip.compress(sentences(8, k).encode()))
    return {}


def report(folder: Path) -> dict[str, Any]:
    """A model, its training file, and a file to judge it by."""
    (folder / "train.txt").write_text(sentences(40, 0))
    (folder / "test.txt").write_text(sentences(10, 1))
    trained("tag", folder / "train.txt", folder / "model")
    return {}


def segments(folder: Path) -> dict[str, Any]:
    """Chunks, and two lists of phrases."""
    for k, name in enumerate(("train.txt", "dev.txt", "test.txt", "new.txt")):
        (folder / name).write_text(sentences(12, k))
    for name in ("cities.txt", "names.txt"):
        (folder / name).write_text("New York\nUlm\n")
    return {}


def bridges(folder: Path) -> dict[str, Any]:
    """What an annotation tool has written, and texts to label."""
    text = "Ada lives in Paris ."
    (folder / "marked.jsonl").write_text(
        json.dumps({"text": text, "spans": [{"start": 0, "end": 3, "label": "PER"}, {"start": 13, "end": 18, "label": "LOC"}]})
        + "\n"
    )
    if importlib.util.find_spec("pyarrow") is not None:
        import pyarrow.parquet

        rows = [(i, *token) for i, one in enumerate(make_sentences(12, seed=0)) for token in one]
        table = pyarrow.table(dict(zip(("sentence", "w", "pos", "chunk"), map(list, zip(*rows, strict=True)), strict=True)))
        for name in ("train.parquet", "dev.parquet"):
            pyarrow.parquet.write_table(table, folder / name)
    for name in ("new.txt", "test.txt"):
        (folder / name).write_text("Ada 0 3\nlives 4 9\nin 10 12\nUlm 13 16\n")
    return {}


def nothing(folder: Path) -> dict[str, Any]:
    """The page says all it needs."""
    return {}


#: page: what it takes for granted
SETUPS = {
    "README.md": tagging, "estimators.md": tagging, "features.md": tagging, "coming-from.md": coming_from, "metrics.md": metrics,
    "latent.md": latent, "ranking.md": ranking, "solvers.md": solvers, "alignment.md": alignment, "folding.md": folding,
    "parsing.md": parsing, "suspects.md": suspects, "constituency.md": constituency, "graphs.md": graphs,
    "packed.md": packed, "report.md": report, "segments.md": segments, "bridges.md": bridges,
}  # fmt: skip
