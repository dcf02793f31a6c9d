"""What a constituency parser has learnt: its grammar, and the rules that it likes and dislikes.

Without a grammar there are no rules, and weights of features have no names: told is how long the weights of each symbol are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from partwise.tasks.common.plots import new_figure, save
from partwise.tasks.constituency.estimator import ConstituencyParser

TRAINING = ("examples", "tokens", "epochs", "primal", "gap", "message")  # what is shown of the notes about the training
WORD = "(word)"  # the symbol of a word without a bracket, where tags are given
DRAWN = 15  # rules of highest weight, and as many of lowest, if nobody says how many


def look(parser: ConstituencyParser, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is; with `top`, the rules of highest and lowest weight; a picture of these."""
    about, what = summary(parser), named(parser)
    lines = [f"{name:18}{value}" for name, value in about.items() if name != "training"]
    lines += [f"{name:18}{value}" for name, value in (parser.training_ or {}).items() if name in TRAINING]
    ordered = strongest(parser)
    if top is not None:
        about["highest"], about["lowest"] = dict(ordered[:top]), dict(ordered[::-1][:top])
        for title in ("highest", "lowest"):
            lines += ["", f"{what} of {title} weight", *(f"{value:10.3f}  {name}" for name, value in about[title].items())]
    if picture is not None:
        draw_weights(ordered, top or DRAWN, picture, what)
        lines.append(f"wrote {picture}")
    return about, "\n".join(lines)


def summary(parser: ConstituencyParser) -> dict[str, Any]:
    """What kind of model it is. Values are numbers, strings, lists and dicts of them."""
    parser._require_fitted()
    grammar = parser.grammar_
    return {
        "grammar": parser.grammar,
        "symbols": len(grammar.symbols),
        "rules": len(grammar.rules),
        "labels": parser.classes_.tolist(),
        "tags": list(grammar.tags),
        "tags_are": parser.tags,
        "markov": parser.markov,
        "features": 1 << parser._bits,
        "weights": int(parser.weights_.size),
        "weights_not_zero": int(np.count_nonzero(parser.weights_)),
        "dtype": str(parser.weights_.dtype),
        **parser._how_learnt(),
        "training": parser.training_,
    }


def named(parser: ConstituencyParser) -> str:
    """What there are weights of that have names."""
    return "symbols" if parser.grammar is None else "rules"


def strongest(parser: ConstituencyParser) -> list[tuple[str, float]]:
    """Rules and their weights, or symbols and the length of theirs; the highest first."""
    return sorted((symbol_norms if parser.grammar is None else rule_weights)(parser).items(), key=lambda item: -item[1])


def symbol_norms(parser: ConstituencyParser) -> dict[str, float]:
    """How long the vector of weights of each symbol is, by its name."""
    names = parser.grammar_.symbols
    table = parser.weights_.reshape(-1, parser.grammar_.packed.n_symbols)
    squares = np.einsum("fs,fs->s", table, table, dtype=np.float64)
    return {name or WORD: float(np.sqrt(square)) for name, square in zip(names, squares, strict=True)}


def rule_weights(parser: ConstituencyParser) -> dict[str, float]:
    """The weight of each rule, by its name."""
    grammar, names = parser.grammar_, parser.grammar_.symbols
    weights, rules = parser.weights_[(1 << parser._bits) * grammar.packed.n_symbols :], grammar.rules.tolist()
    return {f"{names[a]} -> {names[b]} {names[c]}": float(weights[r]) for r, (a, b, c) in enumerate(rules)}


def draw_weights(ordered: list[tuple[str, float]], top: int, path: Path, what: str) -> None:
    """Bars for the rules, or symbols, of highest and lowest weight."""
    shown = ordered if len(ordered) <= 2 * top else [*ordered[:top], *ordered[-top:]]
    figure = new_figure(8.0, 1.0 + 0.25 * len(shown))
    axes = figure.subplots()
    colours = ["#c44e52" if value > 0 else "#4c72b0" for _, value in shown]
    axes.barh(range(len(shown)), [value for _, value in shown], color=colours)
    axes.set_yticks(range(len(shown)), [name for name, _ in shown])
    axes.invert_yaxis()
    axes.set(xlabel="weight", title=what.capitalize())
    save(figure, path)
