"""``partwise inspect``: what a model has learnt, and why a token got its label. The work is done by `partwise.tasks.tagging.inspection`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli import options, tasks
from partwise.cli.common import Refusal, check_writable, in_words, load_tagger, print_json, read_file
from partwise.cli.options import option

if TYPE_CHECKING:
    from partwise.tasks.tagging.inspection import Explanation, FoundFeature, TopFeatures, Transitions
    from partwise.text.columns import Columns

WEIGHTS, WHY = "Weights", "Why a token got its label"
MOST_LABELS = 40  # in the summary


@in_words
def inspect(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    top: Annotated[
        int | None,
        option(
            WEIGHTS, "The n strongest features of each label, for and against; of other models, what is strongest in them.", min=1
        ),
    ] = None,
    label: Annotated[str | None, option(WEIGHTS, "With --top: of this label only.")] = None,
    features: Annotated[str | None, option(WEIGHTS, "Features whose name this regular expression finds.")] = None,
    most: Annotated[int, option(WEIGHTS, "With --features: at most so many, those of largest weights.", min=1)] = 20,
    show_transitions: Annotated[bool, option(WEIGHTS, "Weights of a label after another.", "--transitions")] = False,
    picture: Annotated[
        Path | None, option(WEIGHTS, "Draw the transitions, or what another model has learnt, as PNG (or PDF, SVG).")
    ] = None,
    explain_file: Annotated[str | None, option(WHY, "Column file that holds the token.", "--explain")] = None,
    line: Annotated[int | None, option(WHY, "The line of the token, from 1.", min=1)] = None,
    sentence: Annotated[int | None, option(WHY, "Its sentence, from 0, if not --line.", min=0)] = None,
    token: Annotated[int | None, option(WHY, "Its place in the sentence, from 0.", min=0)] = None,
    against: Annotated[str | None, option(WHY, "The label to compare with. (default: the runner-up)")] = None,
    separator: options.Separator = None,
    encoding: options.Encoding = "utf-8",
    comment: options.Comment = None,
    as_json: options.Json = False,
) -> None:
    """Look into a model: what it is, what it has learnt, why it labels a token as it does.

    partwise inspect model

    partwise inspect model --top 5 --label B-NP

    partwise inspect model --explain test.txt --line 17
    """
    if explain_file is None and any(given is not None for given in (line, sentence, token, against)):
        raise Refusal("--line, --sentence, --token and --against say what to --explain: give the file.")
    if explain_file is not None and (line is None) == (sentence is None or token is None):
        raise Refusal("Say which token to --explain: its --line, or its --sentence and --token.")
    if label is not None and top is None:
        top = 10
    check_writable(picture)

    if kind := tasks.kind_for(model):
        given = {"label": label, "features": features, "transitions": show_transitions, "explain": explain_file}
        tasks.refuse(kind, model, **given)
        tasks.inspect_model(kind, model, top, picture, as_json)
        return

    from partwise.tasks.tagging import inspection

    tagger = load_tagger(model, any_tokens=explain_file is None)
    shown: dict[str, Any] = {}
    if top is not None:
        shown["top"] = inspection.top_features(tagger, top, None if label is None else label_called(tagger, label))
    if features is not None:
        shown["found"] = inspection.find_features(tagger, features, most)
    if show_transitions or picture is not None:
        shown["transitions"] = inspection.transitions(tagger)
    if explain_file is not None:
        columns = read_file(explain_file, separator, encoding, comment)
        if line is not None:
            sentence, token = token_at(columns, line)
        rival = None if against is None else label_called(tagger, against)
        shown["why"] = inspection.explain(tagger, columns, sentence or 0, token or 0, rival)
        shown["words"] = [" ".join(cells) for cells in columns[shown["why"].sentence]]
    if picture is not None:
        from partwise.tasks.common.plots import draw_transitions

        draw_transitions(picture, shown["transitions"])
        shown["picture"] = str(picture)
        if not show_transitions:
            del shown["transitions"]
    about = {"model": str(model), "bytes": model.stat().st_size, **inspection.summary(tagger)}
    if as_json:
        print_json(to_json(about, shown))
    else:
        show(about, shown)


def label_called(tagger: Any, name: str) -> Any:
    """The label that is written so."""
    for label in tagger.classes_.tolist():
        if str(label) == name:
            return label
    raise Refusal(f"{name!r} is not one of the labels {', '.join(map(str, tagger.classes_.tolist()))}.")


def token_at(columns: Columns, line: int) -> tuple[int, int]:
    """Sentence and place in it of the token on a line of the file."""
    import numpy as np

    ends: Any = columns.ends
    newlines = np.flatnonzero(np.frombuffer(columns.data, np.uint8) == 10)
    lines = columns.first_line + np.searchsorted(newlines, ends)
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


def show(about: dict[str, Any], shown: dict[str, Any]) -> None:
    """Tables on stdout: what was asked for, or a summary."""
    from rich.console import Console

    console = Console(highlight=False)
    if "picture" in shown:
        console.print(f"wrote {shown['picture']}", markup=False, soft_wrap=True)
    if not shown:
        console.print(summary_table(about))
    for one in shown.get("top", {}).values():
        console.print(top_table(one))
    if "found" in shown:
        console.print(found_table(shown["found"], [str(label) for label in about.get("states", about["labels"])]))
    if "transitions" in shown:
        width = console.width if console.is_terminal else 10_000  # a file has room for all of it
        (console if console.is_terminal else Console(highlight=False, width=width)).print(
            transitions_table(shown["transitions"], width)
        )
    if "why" in shown:
        console.print(why_table(shown["why"], shown["words"]))


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
    table = _table(about["model"], "", "", show_header=False)
    table.columns[1].justify = "left"
    labels = about["labels"]
    some = ", ".join(map(str, labels[:MOST_LABELS])) + (", ..." if len(labels) > MOST_LABELS else "")
    rows = {
        "file": f"{about['bytes']:,} bytes",
        "labels": f"{len(labels)}: {some}",
        "features": f"{about['features']:,}",
        "weights": f"{about['weights']:,} {about['dtype']}, of which {about['weights_not_zero']:,} are not zero",
    }
    special = {*rows, "model", "bytes", "dtype", "weights_not_zero", "training"}
    for key, value in {**rows, **{k: v for k, v in about.items() if k not in special}}.items():
        if value is None:
            continue
        _add(table, key.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else str(value))
    for key, value in (about["training"] or {}).items():
        if key not in about:
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
    import numpy as np

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
