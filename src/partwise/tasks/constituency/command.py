"""``partwise train constituency`` and what follows: from trees in brackets to a model that parses into such trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.tasks.common import command_options as common
from partwise.tasks.common.command import Command, Seconds, json_lines, written_lines
from partwise.tasks.common.command_options import FEATURES, FILES, LABELS, LEARNING, Refusal, Training, option, percent

TINY = """(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))
(S (NP (PRP they)) (VP (VBP see) (NP (DT the) (NN dog))) (. .))
(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (DT the) (JJ old) (NN dog))) (. .))
"""


@dataclass
class Options(common.Options):
    """Of ``train constituency``."""

    rules: str | None = option(
        LABELS,
        "trees: labels meet by the rules of the trees; none: any may meet, which is quicker. (default: trees)",
        "--grammar",
    )
    tags: str | None = option(LABELS, "given: tags are part of the input; predicted: they are looked for with the tree.")
    remembered: int | None = option(
        LABELS, "Children that a node with more than two remembers; -1: all of them. (default: 0)", "--markov", min=-1
    )
    template_file: Path | None = option(
        FEATURES, "File of span templates, one a line, say f.tag|l.tag. (default: a ready-made set)", "--templates"
    )
    hash_bits: int | None = option(
        FEATURES, "There are 2^bits features, with a weight for every symbol. (default: 16, without a grammar 20)", min=8, max=30
    )
    memory: float | None = option(LEARNING, "GB that charts may take, on all threads together. (default: what is free)")
    traces: bool = option(FILES, "Keep empty elements, -NONE-.", "--traces", default=False)
    functions: bool = option(FILES, "Keep what follows - or = in a label: NP-SBJ.", "--functions", default=False)
    first: int | None = option(FILES, "Train on the first so many trees only.", min=1)


@dataclass
class Suspects(common.Suspects):
    """Of ``suspects``."""

    traces: bool = option(FILES, "Keep empty elements, -NONE-, as in training.", "--traces", default=False)
    functions: bool = option(FILES, "Keep what follows - or = in a label: NP-SBJ, as in training.", "--functions", default=False)


# -- answers ----------------------------------------------------------------------------------------------------------


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
    return json_lines(rows)


def as_drawings(parser: Any, data: Any) -> str:
    """Trees drawn with lines, a blank line after each."""
    return "".join(tree.draw() + "\n\n" for tree in parser.predict(data))


def as_pictures(parser: Any, data: Any) -> str:
    """One SVG picture with all trees, one below the other."""
    from partwise.files.svg_page import one_below_other
    from partwise.tasks.constituency.drawing import as_svg

    return one_below_other(map(as_svg, parser.predict(data)))


class Constituency(Command):
    """Trees of constituents."""

    file = "Trees in brackets, as in the Penn Treebank; gz; '-' is stdin."
    details = "Brackets with labels: the grammar is read from the trees."
    example = "partwise train constituency train.mrg --dev dev.mrg -o constituents.model"
    options = Options
    suspects_options = Suspects
    reading = ("encoding", "traces", "functions")
    forms = {"brackets": as_brackets, "jsonl": as_jsonl, "tree": as_drawings, "svg": as_pictures}
    reader = "read_brackets_or_lines"
    between = b"\n"
    tiny = "trees.mrg", TINY
    usual = ("--tags", "predicted"), ("--loss", "crf", "--tags", "predicted"), ("--markov", "-1"), ("--grammar", "none")

    def start(self, file: str, dev: str | None, options: Options, make: Callable[..., Any]) -> Training:
        from partwise.tasks.constituency.files import read_brackets

        parser = make()
        if options.rules is not None:
            parser.grammar = None if options.rules == "none" else options.rules
        if options.remembered is not None:
            parser.markov = None if options.remembered < 0 else options.remembered
        if options.template_file is not None:
            parser.templates = written_lines(options.template_file)
        kept = {"traces": options.traces, "functions": options.functions}
        data = read_brackets(file, options.encoding, options.first, **kept)
        held_out = None if dev is None else read_brackets(dev, options.encoding, **kept)

        def about() -> dict[str, Any]:
            return {
                "examples": len(data),
                "tokens": data.n_words,
                "labels": len(parser.classes_),
                "symbols": len(parser.grammar_.symbols),
                "rules": len(parser.grammar_.rules),
                "features": 1 << parser._bits,
            }

        describe = f"{data.name}: {len(data):,} trees, {data.n_words:,} words"
        return self.training(parser, data, held_out, describe, about, metric="f1")

    def count(self, data: Any) -> dict[str, int]:
        return {"sequences": len(data), "tokens": sum(map(len, data)) if isinstance(data, list) else data.n_words}

    def scores(self, model: Any, data: Any) -> dict[str, Any]:
        from partwise.tasks.constituency.grammar import is_partial
        from partwise.tasks.constituency.scores import PUNCTUATION, bracket_scores

        if isinstance(data, list):
            raise Refusal("There are no trees in this file to compare with: expected brackets, (S (NP (DT the) (NN dog)) ...).")
        data = data.take(i for i, tree in enumerate(data.trees) if not is_partial(tree))
        predicted = model.predict(data)
        given, bare = (bracket_scores(data.trees, predicted, ignore=ignore) for ignore in ((), PUNCTUATION))
        found = given._asdict()
        found |= {f"{name}_no_punct": getattr(bare, name) for name in ("precision", "recall", "f1", "unlabelled_f1", "exact")}
        return found | {"unparsed": len(model.unparsed_)}

    def table(self, found: dict[str, Any]) -> str:
        lines = [f"{found['trees']:,} trees, {found['brackets']:,} brackets", f"{'':24}{'all words':>12}{'no punctuation':>16}"]
        names = {"precision": "precision", "recall": "recall", "F1": "f1", "F1 without labels": "unlabelled_f1"}
        for name, key in (names | {"trees all right": "exact"}).items():
            lines.append(f"{name:24}{percent(found[key]):>12}{percent(found[f'{key}_no_punct']):>16}")
        lines.append(f"{'tags':24}{percent(found['tags']):>12}")
        lines.append(f"sentences without a tree of the grammar: {found['unparsed']:,}")
        return "\n".join(lines)

    def suspects(self, model: Any, file: str, options: Any, seconds: Seconds) -> Any:
        from partwise.tasks.common.judged_file import list_suspects
        from partwise.tasks.constituency.files import read_brackets
        from partwise.tasks.constituency.review import JudgedTreeFile

        reading = {name: getattr(options, name) for name in self.reading}
        data, truth = (None if name is None else read_brackets(name, **reading) for name in (file, options.truth))
        seconds("read")
        return list_suspects(JudgedTreeFile, model, data, truth, options, reading=reading)

    def read_labels(self, file: bytes, options: Any) -> tuple[Any, Any]:
        from partwise.tasks.constituency.files import read_brackets

        trees = read_brackets(file, options.encoding, traces=True, functions=True).trees
        return [tree.words() for tree in trees], [str(tree) for tree in trees]


COMMAND = Constituency()
