"""What a parser has learnt.

Its features are hashed, so they cannot be listed; but the weight of any feature can be looked up. Here these are asked for:

- *attachments*: what the tags of head and word alone say of an arc, given its direction and length: the weights of the template
  ``h.upos|m.upos`` (or xpos), alone and with direction and length, added up. A positive one makes the arc likely;
- *relations*: the same in favour of each relation, less its mean over all of them.

They are one template of some forty, so they show tendencies, not scores. A weight that was never learnt is zero, or that of
another feature that fell on the same place: with the usual 2^22 places few do, with the 2^17 of relations some.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partwise.features.arc_rows import ALONE, FIRST_ORDER, hash_text, mix, stretch
from partwise.tasks.common.plots import heat_map, new_figure, save
from partwise.tasks.dependency.estimator import DependencyParser
from partwise.tasks.dependency.relations import RELATION_BITS

ROOT = "root"
TRAINING = ("examples", "tokens", "epochs", "primal", "gap", "message")  # what is shown of the notes about the training
LENGTHS = ("1", "2", "3", "4", "5-10", "11+")
UNIVERSAL = (
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"  # tags of Universal Dependencies
).split()


def look(parser: DependencyParser, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is; with `top`, the strongest attachments and what speaks for relations; a heat map of attachments."""
    about = summary(parser)
    found = None if top is None else strongest(parser, top)
    text = as_text(about, found)
    if picture is not None:
        draw_attachments(picture, attachments(parser))
        text += f"\nwrote {picture}"
    if found is not None:
        about["attachments"] = {name: [one._asdict() for one in found[name]] for name in ("for", "against")}
        about["relations_by_tags"] = {name: [one._asdict() for one in some] for name, some in found["relations"].items()}
    return about, text


def summary(parser: DependencyParser) -> dict[str, Any]:
    """What kind of model it is. Values are numbers, strings, lists and dicts of them."""
    parser._require_fitted()
    return {
        "columns": list(parser.columns_),
        "templates": [text for kind in parser._templates()[: parser.order] for text in kind],
        "features": 1 << parser.hash_bits,
        "hash_bits": parser.hash_bits,
        "weights": int(parser.weights_.size),
        "weights_not_zero": int(np.count_nonzero(parser.weights_)),
        "relation_weights": int(parser.relation_weights_.size),
        "relation_weights_not_zero": int(np.count_nonzero(parser.relation_weights_)),
        "dtype": str(parser.weights_.dtype),
        "projective": parser.projective,
        "single_root": bool(parser.single_root_),
        "order": parser.order,
        "relations": parser.classes_.tolist(),
        **parser._how_learnt(),
        "training": parser.training_,
    }


class Attachment(NamedTuple):
    """An arc by its tags: the head is to the left or right of the word, so many words away."""

    head: str
    word: str
    side: str
    length: str
    weight: float

    def __str__(self) -> str:
        where = self.side if self.head == ROOT else f"{self.side} {self.length}"
        return f"{self.word} <- {self.head} ({where}) {self.weight:+.3f}"


class Attachments(NamedTuple):
    """Weights of arcs by the tags of head and word."""

    heads: list[str]  #: the tags, and the root
    words: list[str]
    weights: np.ndarray  #: (sides, lengths, heads, words, 1 or relations); sides: head on the left, on the right

    def strongest(self, n: int, sign: float = 1.0, relation: int = 0) -> list[Attachment]:
        """The n largest weights, or smallest, for sign = -1: a pair of tags once a side, at the length where it is strongest."""
        values = sign * self.weights[..., relation]
        values[1, :, self.heads.index(ROOT)] = -np.inf  # the root lies before the first word
        lengths, values = values.argmax(axis=1), values.max(axis=1)
        found = []
        for place in np.argsort(-values, axis=None, kind="stable")[:n]:
            side, head, word = np.unravel_index(place, values.shape)
            if values[side, head, word] > 0.0:
                length, weight = LENGTHS[lengths[side, head, word]], sign * float(values[side, head, word])
                found.append(Attachment(self.heads[head], self.words[word], ("left", "right")[side], length, weight))
        return found


def pair_template(parser: DependencyParser) -> str:
    """The template of two tags; its column is the one that `tags_` are from."""
    column = next((name for name in ("upos", "xpos") if name in parser.columns_), None)
    template = f"h.{column}|m.{column}"
    if column is None or template not in (parser.templates or FIRST_ORDER):
        raise ValueError("This model has no template h.upos|m.upos (or xpos): what it has learnt of tags alone cannot be told.")
    return template


def tags_of(parser: DependencyParser) -> list[str]:
    """The tags of the training data; those of Universal Dependencies where the model does not tell."""
    return list(parser.tags_) or UNIVERSAL


def attachments(parser: DependencyParser, relations: bool = False) -> Attachments:
    """Look up the weights of all pairs of tags, of arcs or of their relations.

    Cost: one look-up for each pair of tags, side, length and relation.
    """
    template, tags = pair_template(parser), tags_of(parser)
    heads = np.array([hash_text(ROOT), *(hash_text(f"={tag}") for tag in tags)], np.uint64)[:, None]
    words = np.array([hash_text(f"={tag}") for tag in tags], np.uint64)[None, :]
    bits = RELATION_BITS if relations else parser.hash_bits
    table = (parser.relation_weights_ if relations else parser.weights_).reshape(1 << bits, -1)
    pair = mix(mix(np.full((1, 1), hash_text(template), np.uint64), heads), words)

    def weight(how: Any) -> np.ndarray:
        return table[mix(pair, np.uint64(how)) >> np.uint64(64 - bits)].astype(np.float64)

    distances = (1, 2, 3, 4, 5, 11)
    found = weight(ALONE) + np.array([[weight(stretch(side * d)) for d in distances] for side in (-1, 1)])
    if relations:
        found -= found.mean(axis=-1, keepdims=True)
    return Attachments([ROOT, *tags], tags, found)


def strongest(parser: DependencyParser, n: int) -> dict[str, Any]:
    """The n strongest attachments for and against, and the n strongest in favour of each relation."""
    arcs = attachments(parser)
    found: dict[str, Any] = {"for": arcs.strongest(n), "against": arcs.strongest(n, -1.0), "relations": {}}
    if len(parser.classes_):
        named = attachments(parser, relations=True)
        found["relations"] = {name: named.strongest(n, relation=k) for k, name in enumerate(parser.classes_.tolist())}
    return found


def as_text(about: dict[str, Any], top: dict[str, Any] | None) -> str:
    """For people."""
    trees = "projective" if about["projective"] else "non-projective"
    roots = "one word below the root" if about["single_root"] else "several words may hang from the root"
    filled = 100 * about["weights_not_zero"] / max(about["weights"], 1)
    rows = [
        ("trees", f"{trees}, {roots}"),
        ("columns", ", ".join(about["columns"])),
        ("templates", f"{len(about['templates'])} of arcs" + (", siblings and grandparents" if about["order"] == 2 else "")),
        ("weights", f"{about['weights']:,}, {about['weights_not_zero']:,} of them not zero ({filled:.0f} %), {about['dtype']}"),
    ]
    if about["relations"]:
        n, used = len(about["relations"]), about["relation_weights_not_zero"]
        rows.append(("relations", f"{n}, with {about['relation_weights']:,} weights, {used:,} of them not zero"))
        rows.append(("", wrapped(about["relations"])))
    notes = {"C": about["C"], **(about["training"] or {})}
    rows += [("loss", about["loss"]), ("solver", about["solver"])]
    rows += [(name, shown(notes[name])) for name in ("C", *TRAINING) if name in notes and shown(notes[name])]
    lines = [f"{name:14}{text}" for name, text in rows]
    if top is not None:
        for title, key in (("Attachments the model likes", "for"), ("and those it does not", "against")):
            lines += ["", f"{title} (word <- head, which is to the left or right, so many words away):"]
            lines += [f"  {one}" for one in top[key]]
        if top["relations"]:
            width = max(map(len, top["relations"]))
            lines += ["", "What speaks for a relation:"]
            lines += [f"  {name:{width}}  {'; '.join(map(str, some))}" for name, some in top["relations"].items()]
    return "\n".join(lines)


def wrapped(names: Sequence[str], width: int = 110) -> str:
    """Names in lines, the second and later ones under the first."""
    return "\n".join(textwrap.wrap(" ".join(names), width, subsequent_indent=" " * 14, break_on_hyphens=False))


def shown(value: Any) -> str:
    """A figure of training; nothing for what is no single figure."""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) and np.isfinite(value) else ""


def draw_attachments(path: Path, arcs: Attachments) -> None:
    """Red: likely, blue: unlikely; means over lengths of arcs. Two panels: heads on the left of their word, and on the right."""
    weights = arcs.weights[..., 0].mean(axis=1)
    limit, side = float(np.abs(weights).max(initial=1e-9)), float(np.clip(1.5 + 0.38 * len(arcs.heads), 4.0, 24.0))
    figure = new_figure(2 * side + 1.0, side)
    axes = figure.subplots(1, 2)
    for axis, values, where in zip(axes, weights, ("left", "right"), strict=True):
        heads = arcs.heads if where == "left" else arcs.heads[1:]  # the root lies to the left of all words
        image = heat_map(axis, values[-len(heads) :], heads, arcs.words, limit)
        axis.set(xlabel="word", ylabel="head", title=f"Head on the {where} of its word")
    figure.colorbar(image, ax=axes, shrink=0.7)
    save(figure, path)
