"""Models that parse, on the command line: see `partwise.cli.tasks`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from partwise.cli.common import Refusal
from partwise.cli.tasks import percent


def read(file: str, encoding: str) -> Any:
    """A treebank."""
    from partwise.tasks.dependency.files import read_treebank

    return read_treebank(file, encoding)


def count(treebank: Any) -> dict[str, int]:
    """How much it is."""
    return {"sequences": len(treebank), "tokens": treebank.words.n_tokens}


def as_columns(parser: Any, treebank: Any) -> str:
    """The treebank as it was, with other trees."""
    return parser.parse(treebank)


def as_jsonl(parser: Any, treebank: Any) -> str:
    """One JSON object a sentence."""
    trees = parser.predict(treebank)
    rows = ({"words": treebank.forms(i), "heads": t.heads, "relations": t.relations} for i, t in enumerate(trees))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_drawings(parser: Any, treebank: Any) -> str:
    """Trees drawn with lines, a blank line after each."""
    trees = parser.predict(treebank)
    return "".join(tree.draw(treebank.forms(i)) + "\n\n" for i, tree in enumerate(trees))


def as_pictures(parser: Any, treebank: Any) -> str:
    """One SVG picture with all trees, one below the other."""
    from partwise.files.svg_page import one_below_other
    from partwise.tasks.dependency.drawing import as_svg

    trees = enumerate(parser.predict(treebank))
    return one_below_other(as_svg(treebank.forms(i), tree.heads, tree.relations) for i, tree in trees)


FORMS: dict[str, Callable[[Any, Any], str]] = {
    "columns": as_columns,
    "jsonl": as_jsonl,
    "tree": as_drawings,
    "svg": as_pictures,
}


def scores(parser: Any, treebank: Any) -> dict[str, Any]:
    """UAS and LAS, of all words and without punctuation."""
    given = parser.attachment(treebank)
    bare = parser.attachment(treebank, ignore=treebank.is_punctuation())
    found: dict[str, Any] = {
        "uas": given.uas,
        "las": given.las,
        "label_accuracy": given.label_accuracy,
        "complete": given.complete,
    }
    found |= {"uas_no_punct": bare.uas, "las_no_punct": bare.las, "words": given.words, "sentences": given.sentences}
    return found | ({"proven": parser.proven_} if parser.order == 2 else {})


def as_table(found: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{found['sentences']:,} sentences, {found['words']:,} words", f"{'':24}{'all words':>12}{'no punctuation':>16}"]
    for name, key in (("UAS", "uas"), ("LAS", "las")):
        lines.append(f"{name:24}{percent(found[key]):>12}{percent(found[f'{key}_no_punct']):>16}")
    lines.append(f"{'relations':24}{percent(found['label_accuracy']):>12}")
    lines.append(f"{'sentences all right':24}{percent(found['complete']):>12}")
    if "proven" in found:
        lines.append(f"{'proven to be the best':24}{percent(found['proven']):>12}")
    return "\n".join(lines)


def look(parser: Any, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is; with `top`, the strongest attachments and what speaks for relations; a heat map of attachments."""
    from partwise.tasks.dependency import inspection as parser_inspection

    about = parser_inspection.summary(parser)
    try:
        found = None if top is None else parser_inspection.strongest(parser, top)
        arcs = None if picture is None else parser_inspection.attachments(parser)
    except ValueError as error:
        raise Refusal(str(error)) from None
    text = parser_inspection.as_text(about, found)
    if arcs is not None and picture is not None:
        from partwise.tasks.common.plots import draw_attachments

        draw_attachments(picture, arcs)
    if found is not None:
        plain = {name: [one._asdict() for one in found[name]] for name in ("for", "against")}
        about["attachments"] = plain
        about["relations_by_tags"] = {name: [one._asdict() for one in some] for name, some in found["relations"].items()}
    return about, text
