"""What a trained model of sequences has learnt, and why it answered as it did: what ``partwise inspect`` tells.

In Python, `summary`, `top_features`, `find_features` and `transitions` show the weights, `explain` says which of them made the
difference between two answers.

Examples
--------
>>> from partwise.tasks.tagging.inspection import explain, top_features
>>> top_features(model, 5)["B-NP"].positive                        # doctest: +SKIP
>>> print(explain(model, X, sentence=0, token=3))                  # doctest: +SKIP
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from partwise.tasks.common.command import Told
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.tagging.explanation import Explanation, explain
from partwise.tasks.tagging.files import Source, line_numbers
from partwise.tasks.tagging.weights import (
    FoundFeature,
    TopFeatures,
    Transitions,
    draw_transitions,
    find_features,
    summary,
    top_features,
    transitions,
)
from partwise.text.columns import Columns

MOST_LABELS = 40  # in the summary


def inspect(model: Any, options: Any) -> Told:
    """What was asked for, or a summary."""
    check(options)
    shown: dict[str, Any] = {}
    top = 10 if options.label is not None and options.top is None else options.top
    if top is not None:
        shown["top"] = top_features(model, top, None if options.label is None else label_called(model, options.label))
    if options.features is not None:
        shown["found"] = find_features(model, options.features, options.most)
    if options.transitions:
        shown["transitions"] = transitions(model)
    if options.explain is not None:
        columns = Source.of(options).columns(options.explain)
        sentence, token = (options.sentence, options.token) if options.line is None else token_at(columns, options.line)
        against = None if options.against is None else label_called(model, options.against)
        shown["why"] = explain(model, columns, sentence, token, against)
        shown["words"] = [" ".join(cells) for cells in columns[shown["why"].sentence]]
    if options.picture is not None:
        draw_transitions(options.picture, transitions(model))
        shown["picture"] = str(options.picture)
    about = summary(model)
    return Told(to_json(about, shown), said(about, shown))


def check(options: Any) -> None:
    """Refuse what does not say which token to explain."""
    place = (options.line, options.sentence, options.token, options.against)
    if options.explain is None and any(given is not None for given in place):
        raise Refusal("--line, --sentence, --token and --against say what to --explain: give the file.")
    if options.explain is not None and (options.line is None) == (options.sentence is None or options.token is None):
        raise Refusal("Say which token to --explain: its --line, or its --sentence and --token.")


def label_called(model: Any, name: str) -> Any:
    """The label that is written so."""
    for label in model.classes_.tolist():
        if str(label) == name:
            return label
    raise Refusal(f"{name!r} is not one of the labels {', '.join(map(str, model.classes_.tolist()))}.")


def token_at(columns: Columns, line: int) -> tuple[int, int]:
    """Sentence and place in it of the token on a line of the file."""
    lines = line_numbers(columns)
    token = int(np.searchsorted(lines, line))
    if token == len(lines) or lines[token] != line:
        raise Refusal(f"{columns.name}: there is no token on line {line}.")
    sentence = int(np.searchsorted(columns.starts, token, side="right")) - 1
    return sentence, token - int(columns.starts[sentence])


# ---------------------------------------------------------------------------------------------------------------------
# For machines
# ---------------------------------------------------------------------------------------------------------------------


def to_json(about: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """One object: the summary, and what was asked for."""
    found = dict(about)
    if "top" in shown:
        found["top_features"] = {
            str(label): {
                side: [{"feature": f.name, "weight": f.weight} for f in getattr(one, side)] for side in ("positive", "negative")
            }
            for label, one in shown["top"].items()
        }
    labels = [str(label) for label in about.get("states", about["labels"])]
    if "found" in shown:
        found["found_features"] = [
            {"feature": f.name, "weights": dict(zip(labels, f.weights.tolist(), strict=True))} for f in shown["found"]
        ]
    if "transitions" in shown:
        t = shown["transitions"]
        found["transition_weights"] = {"from": t.rows, "to": t.columns, "weights": t.weights.tolist()}  # null: forbidden
    if "picture" in shown:
        found["picture"] = shown["picture"]
    if "why" in shown:
        found["explanation"] = explanation_dict(shown["why"], shown["words"])
    return found


def explanation_dict(why: Explanation, words: list[str]) -> dict[str, Any]:
    """An explanation for JSON."""
    parts = {
        name: [{"name": one.name, "label": one.chosen, "against": one.other, "difference": one.difference} for one in part]
        for name, part in (("features", why.features), ("transitions", why.transitions), ("elsewhere", why.elsewhere))
    }
    return {
        "sentence": why.sentence,
        "token": why.token,
        "cells": words[why.token],
        "label": str(why.label),
        "against": str(why.against),
        "labels": [str(label) for label in why.labels],
        "other_labels": [str(label) for label in why.other_labels],
        **parts,
        "score": why.score,
        "other_score": why.other_score,
        "difference": why.difference,
    }


# ---------------------------------------------------------------------------------------------------------------------
# For people
# ---------------------------------------------------------------------------------------------------------------------


def said(about: dict[str, Any], shown: dict[str, Any]) -> list[Any]:
    """Tables: what was asked for, or a summary."""
    if not shown:
        return [summary_table(about)]
    parts: list[Any] = [f"wrote {shown['picture']}"] if "picture" in shown else []
    parts += [top_table(one) for one in shown.get("top", {}).values()]
    if "found" in shown:
        parts.append(found_table(shown["found"], [str(label) for label in about.get("states", about["labels"])]))
    if "transitions" in shown:
        parts.append(functools.partial(transitions_table, shown["transitions"]))
    if "why" in shown:
        parts.append(why_table(shown["why"], shown["words"]))
    return parts


def _table(title: str, *columns: str, **more: Any) -> Any:
    """The first column holds names, the others numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=Text(title), title_justify="left", **more)
    for k, name in enumerate(columns):
        table.add_column(Text(name), justify="right" if k else "left", overflow="fold")
    return table


def _add(table: Any, *cells: str, style: str | None = None) -> None:
    from rich.text import Text

    table.add_row(*map(Text, cells), style=style)


def summary_table(about: dict[str, Any]) -> Any:
    """All that is known about a model, in two columns."""
    table = _table("", "", "", show_header=False)
    table.columns[1].justify = "left"
    labels = about["labels"]
    some = ", ".join(map(str, labels[:MOST_LABELS])) + (", ..." if len(labels) > MOST_LABELS else "")
    rows = {
        "labels": f"{len(labels)}: {some}",
        "features": f"{about['features']:,}",
        "weights": f"{about['weights']:,} {about['dtype']}, of which {about['weights_not_zero']:,} are not zero",
    }
    special = {*rows, "dtype", "weights_not_zero", "training"}
    for key, value in {**rows, **{k: v for k, v in about.items() if k not in special}}.items():
        if value is None:
            continue
        _add(table, key.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else str(value))
    for key, value in (about["training"] or {}).items():
        if key not in about and not isinstance(value, dict):
            _add(table, f"training: {key.replace('_', ' ')}", f"{value:g}" if isinstance(value, float) else str(value))
    return table


def top_table(top: TopFeatures) -> Any:
    """Features for and against a label, side by side."""
    table = _table(str(top.label), "for it", "weight", "against it", "weight")
    table.columns[2].justify = "left"
    for k in range(max(len(top.positive), len(top.negative))):
        sides = [part[k] if k < len(part) else None for part in (top.positive, top.negative)]
        _add(table, *(cell for one in sides for cell in ((one.name, f"{one.weight:+.4f}") if one else ("", ""))))
    return table


def found_table(found: list[FoundFeature], labels: list[str]) -> Any:
    """Features, each with the labels it speaks for and against most."""
    table = _table(f"{len(found)} features", "feature", "for", "weight", "against", "weight")
    for one in found:
        best, worst = int(one.weights.argmax()), int(one.weights.argmin())
        _add(table, one.name, labels[best], f"{one.weights[best]:+.4f}", labels[worst], f"{one.weights[worst]:+.4f}")
    return table


def transitions_table(transitions: Transitions, width: int) -> Any:
    """A matrix, or, where that is too wide, the strongest."""
    if max(map(len, transitions.rows)) + sum(max(len(name), 5) + 3 for name in transitions.columns) > width:
        return strongest_transitions(transitions)
    table = _table("from (row) to (column)", "", *transitions.columns)
    for name, row in zip(transitions.rows, transitions.weights.tolist(), strict=True):
        _add(table, name, *(f"{value:+.2f}" if math.isfinite(value) else "x" for value in row))
    return table


def strongest_transitions(transitions: Transitions, n: int = 20) -> Any:
    """The transitions of largest and of smallest weight."""
    table = _table(f"the {n} strongest of each kind; --json or --picture shows all", "likely", "weight", "unlikely", "weight")
    table.columns[2].justify = "left"
    weights = transitions.weights
    order = [k for k in np.argsort(weights, axis=None, kind="stable").tolist() if math.isfinite(weights.flat[k])]
    width = weights.shape[1]

    def cells(k: int) -> tuple[str, str]:
        return f"{transitions.rows[k // width]} -> {transitions.columns[k % width]}", f"{weights.flat[k]:+.3f}"

    for low, high in zip(order[:n], order[::-1][:n], strict=True):
        _add(table, *cells(high), *cells(low))
    return table


def why_table(why: Explanation, words: list[str]) -> Any:
    """Every contribution, and their sum."""
    title = f"{words[why.token]}: {why.label} rather than {why.against}"
    table = _table(title, "", str(why.label), str(why.against), "difference")
    for name, part in (
        ("features of the token", why.features),
        ("transitions", why.transitions),
        ("the rest of the sentence", why.elsewhere),
    ):
        if part:
            _add(table, name, "", "", f"{math.fsum(one.difference for one in part):+.4f}", style="bold")
        for one in part:
            _add(table, f"  {one.name}", f"{one.chosen:+.4f}", f"{one.other:+.4f}", f"{one.difference:+.4f}")
    _add(table, "score of the labelling", f"{why.score:.4f}", f"{why.other_score:.4f}", f"{why.difference:+.4f}", style="bold")
    return table
