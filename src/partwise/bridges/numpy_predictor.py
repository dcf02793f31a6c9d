"""A tagger as one Python file that needs nothing but numpy: `export_numpy`, ``partwise export --numpy``.

The file is `standalone_tagger` with the arrays of the model in it. It gives the labels that the model gives; features are looked
up by their names in a dict, so that it is some ten to fifty times as slow.
"""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

LONGEST_LINE = 120


def export_numpy(model: Any, path: str | Path) -> int:
    """Write a fitted `SequenceLabeler` to `path`; returns how many bytes that are.

    Models of order 1 without hidden states can be written, whatever their tokens are, unless features are hashed.

    Parameters
    ----------
    model : SequenceLabeler
        Trained.
    path : path
        Of the file to write, ``tagger.py``.

    Examples
    --------
    >>> import runpy
    >>> from partwise import SequenceLabeler
    >>> model = SequenceLabeler(max_epochs=5).fit([[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]])
    >>> n_bytes = export_numpy(model, "tagger.py")
    >>> [list(labels) for labels in runpy.run_path("tagger.py")["predict"]([[["a"], ["b"]]])]
    [['A', 'B']]
    """
    from partwise.bridges import standalone_tagger
    from partwise.files.whole_file import whole_file

    source = Path(standalone_tagger.__file__).read_text(encoding="utf-8")
    data = base64.b64encode(packed(model)).decode()
    lines = "\n".join(f'    "{data[k : k + LONGEST_LINE]}"' for k in range(0, len(data), LONGEST_LINE))
    text = source.replace(
        'DATA = ""  # a zipped archive of arrays, in base64', f"DATA = (  # a zipped archive of arrays\n{lines}\n)"
    )
    with whole_file(path) as stream:
        stream.write(text.encode())
    return len(text.encode())


def packed(model: Any) -> bytes:
    """Its arrays and names as an archive of numpy's."""
    refuse(model)
    kind, encoder = model.encoder_.kind, model.encoder_
    names = [] if kind == "matrix" else model.feature_names_
    if len(set(names)) != len(names):
        raise ValueError("Two features of this model have the same name (cells with '|' in them): it cannot be exported.")
    weights = np.asarray(model.coef_.T, np.float32)
    kept = np.arange(len(weights)) if kind == "matrix" else np.flatnonzero(np.abs(weights).max(axis=1, initial=0.0) > 0)
    transitions, start, stop = (np.array(one, np.float64) for one in (model.transitions_, model.start_, model.stop_))
    for before, after in forbidden(model):
        if before is None:
            start[after] = -np.inf
        elif after is None:
            stop[before] = -np.inf
        else:
            transitions[before, after] = -np.inf
    templates = [
        [one.text, [[atom.source[0], [list(f) for f in atom.source[1]], atom.offset] for atom in one.atoms], one.literals]
        for one in getattr(encoder, "templates", ())
    ]
    labels = [label.item() if isinstance(label, np.generic) else label for label in model.classes_]
    about = {"labels": labels, "tokens": kind, "templates": templates, "names": [names[k] for k in kept] if names else []}
    stream = io.BytesIO()
    np.savez_compressed(
        stream,
        about=np.frombuffer(json.dumps(about, ensure_ascii=False).encode(), np.uint8),
        weights=weights[kept],
        transitions=transitions,
        start=start,
        stop=stop,
    )
    return stream.getvalue()


def forbidden(model: Any) -> list[tuple[int | None, int | None]]:
    """Transitions that the model's constraints forbid, as numbers of labels."""
    from partwise.tasks.tagging.constraints import forbidden_transitions

    return forbidden_transitions(model.constraints, model.classes_, "SequenceLabeler")


def refuse(model: Any) -> None:
    """Say why a model cannot be written, if that is so."""
    if not hasattr(model, "transitions_"):
        raise TypeError(f"Only a SequenceLabeler can be exported. Got {type(model).__name__}.")
    if model.order != 1 or model.hidden != 1:
        raise ValueError(
            f"Only models of order 1 without hidden states can be exported. Got order {model.order}, hidden {model.hidden}."
        )
    if getattr(model.encoder_, "hash_bits", None) is not None:
        raise ValueError("Features of this model are hashed and have no names: it cannot be exported.")
