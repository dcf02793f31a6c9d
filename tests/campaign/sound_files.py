"""Files of every format as they should be: what readers are tried on, after some changes."""

from __future__ import annotations

import importlib.util
import io
import json
import tempfile
from pathlib import Path

import numpy as np

from partwise.files.tensors import write_tensors
from partwise.files.text_edits import EditableText
from partwise.tasks.common.registry import BY_VERB

SVM = b"a 1:0.5 3:2\nb 2:1 # note\na 7:1e-3\n"
CONLLX = b"1\tA\ta\tD\tD\t_\t2\tdet\t_\t_\n2\tdog\tdog\tN\tN\t_\t0\troot\t_\t_\n\n"
DECIDED = b"a X\nb X\n\nc Y\n"  #: what decisions are about
TEMPLATES = b"w[0]\nw[-1]|w[0]\nsuffix3(lower(w[0]))\nmatch('[A-Z]+', w[0])\n__BOS__\nU05:%x[-1,0]/%x[0,0]\nB\n# note\n"
GRAPHS = (
    b'{"nodes": [[0.3, 1], [0, 2.5]], "edges": [[0, 1]], "edge_features": [[0.7]], "types": ["a", 2], "labels": ["sky", null]}\n',
    b'{"image": [[[1, 0.5], [2, 3]], [[0, 0], [1, 1]]], "labels": [[1, 2], [2, null]]}\n{"image": [[[1, 2]]], "labels": [[1]]}\n',
)
UAI = b"MARKOV\n3\n2 2 3\n3\n1 0\n2 0 1\n3 0 1 2\n\n2 1.5 0\n\n4 1 2 3 4\n\n12 1 1 1 1 1 1 1 1 1 1 1 2\n"
BAYES = b"BAYES\n2\n1 2\n2\n0\n2 0 1\n1 3.5\n2\n0.25 0.75\n"
FG = b"3\n4\n0.5\n-1\n2\nXOR 3 1 -2 3\nOR 2 1 2\nOROUT 3 1 2 -3\nPAIR 2 1 2 0.5\n\n1\n1\n1e3\nATMOSTONE 1 1\n"
CRFPP = b"""version: 100
cost-factor: 2
maxid: 10
xsize: 2

Y
X

U00:%x[0,0]
U01:%x[-1,0]/%x[1,1]
B

0 U00:a
2 U00:b
4 B
8 U01:_B-1/V

0.5
-1
0.25
1
0.3
-0.7
0.9
0.1
0.4
0.2

"""
WAPITI = (
    b'#mdl#2#7\n#rdr#4/1/0\n1:*,\n11:u:w=%x[0,0],\n28:u:s=%m[0,0,".?.?$"]/%X[-1,0],\n29:*:c=%t[0,0,"^\\u"]%t[1,0,"\\d"],\n'
    b"#qrk#2\n1:B,\n1:O,\n#qrk#4\n1:*,\n5:u:w=a,\n10:u:s=a/_x-1,\n14:*:c=falsefalse,\n"
    b"0=0x1.aap-6\n3=-0x1.cp-3\n6=0x1p+0\n8=-0x1p+1\n10=0x1.5p-2\n12=0x1p-3\n15=0x1.8p-1\n"
)
PRODIGY = (
    b'{"text": "Ann left.", "tokens": [{"start": 0, "end": 3, "id": 0}, {"start": 4, "end": 8}], '
    b'"spans": [{"start": 0, "end": 3, "label": "PER"}], "answer": "accept"}\n{"text": "no", "answer": "reject"}\n'
)
DOCCANO = (
    b'{"text": "Ann left.", "label": [[0, 3, "PER"]]}\n'
    b'{"data": "Oslo", "entities": [{"start_offset": 0, "end_offset": 4, "label": "L"}]}\n'
)
LABELSTUDIO = (
    b'[{"data": {"text": "Ann left."}, "annotations": [{"was_cancelled": true}, {"result": [{"type": "labels", '
    b'"value": {"start": 0, "end": 3, "labels": ["PER"]}}]}]}]'
)
BRAT = b"Ann Lee left.\n---\nT1\tPER 0 7\tAnn Lee\nR1\tOf Arg1:T1 Arg2:T1\n"
OFFSETS = b"Ann 0 3 B-PER\nLee 4 7 I-PER\n\nleft 8 12 O\n\nOslo 0 4 B-LOC\n"


def tiny(verb: str) -> bytes:
    """The example file of a task."""
    return BY_VERB[verb].command.tiny[1].encode()


def decisions() -> bytes:
    """Decisions about `DECIDED`, as a page of suspects hands them out."""
    digest = EditableText.of(DECIDED, "a.txt").sha256
    changes = [{"line": 1, "at": 2, "from": "X", "to": "Y"}, {"line": 4, "at": 11, "from": "Y", "to": "ZZ"}]
    said = {"format": "partwise decisions", "version": 1, "task": "tag", "reading": {"label_column": 1}}
    said["file"] = {"name": "a.txt", "sha256": digest, "encoding": "utf-8"}
    said["decisions"] = [{"item": 0, "line": 1, "choice": "edit", "changes": changes}]
    return json.dumps(said).encode()


def pictures() -> bytes:
    """Pictures as numpy keeps them."""
    out = io.BytesIO()
    rng = np.random.default_rng(0)
    np.savez(out, images=rng.normal(size=(2, 3, 4, 2)), labels=rng.integers(0, 2, (2, 3, 4)))
    return out.getvalue()


def tensors() -> bytes:
    """Some tensors."""
    with tempfile.TemporaryDirectory() as folder:
        write_tensors(Path(folder, "t"), {"format": "x"}, {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros(0, np.int32)})
        return Path(folder, "t").read_bytes()


def parquet() -> list[bytes]:
    """A table, if there is a library that writes one."""
    if importlib.util.find_spec("pyarrow") is None:
        return []
    import pyarrow
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"x": [1.0, 2.0, None], "kind": ["a", "b", "a"], "class": ["u", "v", "u"]}), out)
    return [out.getvalue()]


def crfsuite_models() -> list[bytes]:
    """Models of CRFsuite, if it is there."""
    if importlib.util.find_spec("pycrfsuite") is None:
        return []
    import pycrfsuite

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for algorithm in ("lbfgs", "arow"):
            trainer = pycrfsuite.Trainer(algorithm, {"max_iterations": 3}, verbose=False)
            trainer.append([{"a": 1.0}, {"b": 0.5}, {"a": 1.0, "é": 2.0}], ["X", "Y", "Z"])
            trainer.train(f"{folder}/m")
            found.append(Path(folder, "m").read_bytes())
    return found
