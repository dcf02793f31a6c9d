"""Bridges to where users already are: annotation tools, data frames, spaCy, and a predictor that needs nothing but numpy."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partwise.bridges.annotated_text import AnnotatedText, TextSpan, tokenise
    from partwise.bridges.annotation_files import FORMATS, read_annotations, write_annotations
    from partwise.bridges.frames import fit_frame, predict_frame, sequences_of
    from partwise.bridges.numpy_predictor import export_numpy

_HOME = {
    "AnnotatedText": "annotated_text",
    "TextSpan": "annotated_text",
    "tokenise": "annotated_text",
    "FORMATS": "annotation_files",
    "read_annotations": "annotation_files",
    "write_annotations": "annotation_files",
    "fit_frame": "frames",
    "predict_frame": "frames",
    "sequences_of": "frames",
    "export_numpy": "numpy_predictor",
}

__all__ = [
    "FORMATS",
    "AnnotatedText",
    "TextSpan",
    "export_numpy",
    "fit_frame",
    "predict_frame",
    "read_annotations",
    "sequences_of",
    "tokenise",
    "write_annotations",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'partwise.bridges' has no attribute {name!r}")
    return getattr(importlib.import_module(f"partwise.bridges.{_HOME[name]}"), name)
