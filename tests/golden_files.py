"""How golden files are written and compared: inputs that come back as they were, answers as plain JSON, tolerances.

A golden model ``NAME.model.gz`` is a model file, compressed; ``NAME.json`` next to it tells what it is, what it was asked and
what it answered. ``cli-TASK.json`` holds files, commands and what they printed, ``functions.json`` the answers to
`golden_functions`, ``names.json`` public names.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import json
import math
import re
import runpy
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse

GOLDEN = Path(__file__).parent / "contracts" / "golden"
CHANGING = re.compile(r"seconds|cpu|\w+_per_second|bytes|message")  #: what another run may tell otherwise


def models() -> list[str]:
    """The names of all golden models."""
    return sorted(path.name.removesuffix(".model.gz") for path in GOLDEN.glob("*.model.gz"))


def tasks() -> list[str]:
    """The tasks of the command line."""
    return sorted(path.stem.removeprefix("cli-") for path in GOLDEN.glob("cli-*.json"))


def read(name: str) -> Any:
    """What ``NAME.json`` says."""
    return json.loads((GOLDEN / f"{name}.json").read_text())


def write(name: str, value: Any) -> None:
    """The same, the other way round: a line for each entry that is not long."""
    (GOLDEN / f"{name}.json").write_text(in_lines(value) + "\n")


def in_lines(value: Any, indent: str = "") -> str:
    """JSON that people can compare: what fits into a line is in one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + len(indent) <= 130 or not isinstance(value, dict | list) or not value:
        return flat
    more = indent + " "
    if isinstance(value, dict):
        rows = [f"{more}{json.dumps(key, ensure_ascii=False)}: {in_lines(item, more)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if all(isinstance(item, int | float) for item in value):
        return flat
    return "[\n" + ",\n".join(more + in_lines(item, more) for item in value) + f"\n{indent}]"


def unpack(name: str, path: Path) -> Path:
    """The golden model `name` as a model file at `path`."""
    path.write_bytes(gzip.decompress((GOLDEN / f"{name}.model.gz").read_bytes()))
    return path


# ---------------------------------------------------------------------------------------------------------------------
# Inputs: JSON that becomes the same object again
# ---------------------------------------------------------------------------------------------------------------------


def readers() -> dict[str, Any]:
    """What makes data of text, by the name that golden files have for it."""
    import partwise
    from partwise import datasets

    return {
        "columns": partwise.read_columns,
        "treebank": datasets.read_treebank,
        "brackets": datasets.read_brackets,
        "alignments": datasets.read_alignments,
        "rna": datasets.read_rna,
        "letor": datasets.read_letor,
        "graphs": datasets.read_graphs,
    }


class Text(str):
    """Text that is to be read by one of `readers`."""

    kind: str

    @classmethod
    def of(cls, kind: str, text: str) -> Text:
        """Text of that kind."""
        new = cls(text)
        new.kind = kind
        return new

    def data(self) -> Any:
        """What the reader makes of it."""
        return readers()[self.kind](self.encode())


def to_json(value: Any) -> Any:
    """An input as JSON; see `from_json`."""
    if isinstance(value, Text):
        return {"$text": [value.kind, str(value)]}
    if scipy.sparse.issparse(value):
        return {"$sparse": value.toarray().tolist()}
    if isinstance(value, np.ndarray):
        return {"$array": [value.dtype.str, value.tolist()]}
    if isinstance(value, tuple | set | frozenset):
        items = list(value) if isinstance(value, tuple) else sorted(value)
        return {"$tuple" if isinstance(value, tuple) else "$set": [to_json(item) for item in items]}
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    return value


def from_json(value: Any) -> Any:
    """The input that `to_json` wrote."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = next((key for key in value if key.startswith("$")), None)
    if tag is None:
        return {key: from_json(item) for key, item in value.items()}
    content = value[tag]
    if tag == "$text":
        return Text.of(*content).data()
    if tag == "$sparse":
        return scipy.sparse.csr_matrix(np.array(content, float))
    if tag == "$array":
        return np.array(content[1], content[0])
    return {"$tuple": tuple, "$set": set}[tag](from_json(item) for item in content)


# ---------------------------------------------------------------------------------------------------------------------
# Answers: plain JSON, compared with a tolerance
# ---------------------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """An answer of any kind as lists, dicts, strings and numbers. Records become dicts, or text if they have one."""
    if "__str__" in vars(type(value)) and not isinstance(value, np.ndarray | np.generic):
        return str(value)  # trees, reports
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"class": type(value).__name__} | {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(item) for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: plain(item) for key, item in value.items()}
        return sorted([[plain(key), plain(item)] for key, item in value.items()], key=lambda row: str(row[0]))
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def differences(found: Any, expected: Any, rel: float, at: str = "") -> list[str]:
    """Where `found` is not what was expected; dicts may have more entries than then."""
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return [f"{at or '.'}: {found!r:.80}, not {expected!r:.80}"]
        lost = [f"{at}.{key}: lost" for key in expected if key not in found]
        return lost + [d for key in expected if key in found for d in differences(found[key], expected[key], rel, f"{at}.{key}")]
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return [f"{at or '.'}: {found!r:.80}, not {expected!r:.80}"]
        return [d for k, two in enumerate(zip(found, expected, strict=True)) for d in differences(*two, rel, f"{at}[{k}]")]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (found, expected))
    same = math.isclose(found, expected, rel_tol=rel, abs_tol=rel / 10) if numbers else found == expected
    return [] if same and isinstance(found, bool) == isinstance(expected, bool) else [f"{at or '.'}: {found!r}, not {expected!r}"]


# ---------------------------------------------------------------------------------------------------------------------
# Models and commands
# ---------------------------------------------------------------------------------------------------------------------


def about(model: Any) -> dict[str, Any]:
    """What a model is, apart from its weights."""
    return {
        "estimator": type(model).__name__,
        "parameters": plain({name: value for name, value in model.get_params(deep=False).items() if name != "callbacks"}),
        "solver": model.solver_,
        "temperature": model.temperature_,
        "n_weights": int(model.weights_.size),
        "dtype": model.weights_.dtype.name,
    }


def ask(model: Any, call: dict[str, Any], inputs: dict[str, Any]) -> Any:
    """The answer to one call; an attribute if it is none."""
    given = {keyword: inputs[name] for keyword, name in call.get("with", {}).items()}
    method = getattr(model, call["call"])
    return plain(method(**given, **call.get("options", {})) if "with" in call else method)


def run(words: list[str]) -> dict[str, Any]:
    """What ``python -m partwise WORDS`` prints on stdout, without a process of its own: ``json`` if it is, else ``text``."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", newline="")
    with (
        mock.patch.object(sys, "argv", ["partwise", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()) as said,
    ):
        try:
            runpy.run_module("partwise", run_name="__main__")
        except SystemExit as end:
            assert not end.code, f"partwise {' '.join(words)}: {said.getvalue()}"
    out.flush()
    text = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
    try:
        return {"json": without_clocks(json.loads(text))}
    except ValueError:
        return {"text": text}


def without_clocks(value: Any) -> Any:
    """The same without times, sizes of files and words for people."""
    if isinstance(value, dict):
        return {key: without_clocks(item) for key, item in value.items() if not CHANGING.fullmatch(key)}
    return [without_clocks(item) for item in value] if isinstance(value, list) else value
