"""Models of constituency trees, on the command line: see `partwise.cli.tasks`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from partwise.cli.tasks import percent

TRAINING = ("examples", "tokens", "epochs", "primal", "gap", "message")  # what is shown of the notes about the training


def read(file: str, encoding: str) -> Any:
    """Trees in brackets; or text without: a sentence a line, words with blanks between them."""
    from partwise.tasks.constituency.files import read_brackets_or_lines

    return read_brackets_or_lines(file, encoding)


def count(data: Any) -> dict[str, int]:
    """How much it is."""
    return {"sequences": len(data), "tokens": sum(map(len, data)) if isinstance(data, list) else data.n_words}


def as_brackets(parser: Any, data: Any) -> str:
    """A tree a line."""
    return parser.parse(data)


def as_jsonl(parser: Any, data: Any) -> str:
    """One JSON object a sentence."""
    trees = parser.predict(data)
    glued = set(parser.unparsed_.tolist())
    rows = (
        {
            "words": t.words(),
            "tags": [tag for _, tag in t.leaves()],
            "brackets": t.spans(),
            "tree": str(t),
            "parsed": i not in glued,
        }
        for i, t in enumerate(trees)
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_drawings(parser: Any, data: Any) -> str:
    """Trees drawn with lines, a blank line after each."""
    return "".join(tree.draw() + "\n\n" for tree in parser.predict(data))


def as_pictures(parser: Any, data: Any) -> str:
    """One SVG picture with all trees, one below the other."""
    import re

    from partwise.tasks.constituency.drawing import as_svg

    top, widest, parts = 0, 0, []
    for picture in map(as_svg, parser.predict(data)):
        width, height = (int(re.search(rf'{name}="(\d+)"', picture)[1]) for name in ("width", "height"))  # type: ignore[index]
        parts.append(picture.replace("<svg ", f'<svg y="{top}" ', 1))
        top, widest = top + height, max(widest, width)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{widest}" height="{top}">\n'
    return head + "".join(parts) + "</svg>\n"


FORMS: dict[str, Callable[[Any, Any], str]] = {
    "brackets": as_brackets,
    "jsonl": as_jsonl,
    "tree": as_drawings,
    "svg": as_pictures,
}


def scores(parser: Any, data: Any) -> dict[str, Any]:
    """Precision, recall and F1 of brackets, with punctuation and without."""
    from partwise.tasks.constituency.scores import PUNCTUATION, bracket_scores

    if isinstance(data, list):
        from partwise.cli.common import Refusal

        raise Refusal("There are no trees in this file to compare with: expected brackets, (S (NP (DT the) (NN dog)) ...).")
    predicted = parser.predict(data)
    given, bare = bracket_scores(data.trees, predicted), bracket_scores(data.trees, predicted, ignore=PUNCTUATION)
    found = given._asdict()
    found |= {f"{name}_no_punct": getattr(bare, name) for name in ("precision", "recall", "f1", "unlabelled_f1", "exact")}
    return found | {"unparsed": len(parser.unparsed_)}


def as_table(found: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{found['trees']:,} trees, {found['brackets']:,} brackets", f"{'':24}{'all words':>12}{'no punctuation':>16}"]
    names = {"precision": "precision", "recall": "recall", "F1": "f1", "F1 without labels": "unlabelled_f1"}
    for name, key in (names | {"trees all right": "exact"}).items():
        lines.append(f"{name:24}{percent(found[key]):>12}{percent(found[f'{key}_no_punct']):>16}")
    lines.append(f"{'tags':24}{percent(found['tags']):>12}")
    lines.append(f"sentences without a tree of the grammar: {found['unparsed']:,}")
    return "\n".join(lines)


def look(parser: Any, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is; with `top`, the rules of highest and lowest weight; a picture of these."""
    import numpy as np

    from partwise.losses.records import get_loss

    grammar = parser.grammar_
    about: dict[str, Any] = {
        "symbols": len(grammar.symbols),
        "rules": len(grammar.rules),
        "labels": parser.classes_.tolist(),
        "tags": list(grammar.tags),
        "tags_are": parser.tags,
        "markov": parser.markov,
        "features": 1 << parser.hash_bits,
        "weights": int(parser.weights_.size),
        "weights_not_zero": int(np.count_nonzero(parser.weights_)),
        "dtype": str(parser.weights_.dtype),
        "loss": get_loss(parser.loss).name,
        "C": parser.C,
        "solver": parser.solver_,
        "training": parser.training_,
    }
    lines = [f"{name:18}{value}" for name, value in about.items() if name != "training"]
    lines += [f"{name:18}{value}" for name, value in (parser.training_ or {}).items() if name in TRAINING]
    named = rule_weights(parser)
    ordered = sorted(named.items(), key=lambda item: -item[1])
    if top is not None:
        about["highest"], about["lowest"] = dict(ordered[:top]), dict(ordered[::-1][:top])
        for title in ("highest", "lowest"):
            lines += ["", f"rules of {title} weight", *(f"{value:10.3f}  {name}" for name, value in about[title].items())]
    if picture is not None:
        draw_rules(ordered, top or 15, picture)
        lines.append(f"wrote {picture}")
    return about, "\n".join(lines)


def rule_weights(parser: Any) -> dict[str, float]:
    """The weight of each rule, by its name."""
    packed, names = parser.grammar_.packed, parser.grammar_.symbols
    weights = parser.weights_[(1 << parser.hash_bits) * packed.n_symbols :]
    triples = zip(packed.parent.tolist(), packed.first.tolist(), packed.second.tolist(), strict=True)
    glue = len(names)
    return {f"{names[a]} -> {names[b]} {names[c]}": float(weights[r]) for r, (a, b, c) in enumerate(triples) if a < glue}


def draw_rules(ordered: list[tuple[str, float]], top: int, path: Path) -> None:
    """Bars for the rules of highest and lowest weight."""
    from partwise.tasks.common.plots import new_figure, save

    shown = ordered if len(ordered) <= 2 * top else [*ordered[:top], *ordered[-top:]]
    figure = new_figure(8.0, 1.0 + 0.25 * len(shown))
    axes = figure.subplots()
    colours = ["#c44e52" if value > 0 else "#4c72b0" for _, value in shown]
    axes.barh(range(len(shown)), [value for _, value in shown], color=colours)
    axes.set_yticks(range(len(shown)), [name for name, _ in shown])
    axes.invert_yaxis()
    axes.set(xlabel="weight", title="Rules")
    save(figure, path)
