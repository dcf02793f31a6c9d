"""``partwise train parse`` and what follows: from a treebank to a model that parses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.tasks.common import command_options as common
from partwise.tasks.common.command import Command, Seconds, json_lines, written_lines
from partwise.tasks.common.command_options import FEATURES, FILES, LABELS, LEARNING, Training, option, percent

TINY = """1 dogs _ NOUN _ _ 2 nsubj _ _
2 bark _ VERB _ _ 0 root _ _

1 we _ PRON _ _ 2 nsubj _ _
2 read _ VERB _ _ 0 root _ _
3 books _ NOUN _ _ 2 obj _ _
4 . _ PUNCT _ _ 2 punct _ _

1 cats _ NOUN _ _ 2 nsubj _ _
2 chase _ VERB _ _ 0 root _ _
3 old _ ADJ _ _ 4 amod _ _
4 mice _ NOUN _ _ 2 obj _ _

"""


@dataclass
class Options(common.Grouped, common.Options):
    """Of ``train parse``."""

    template_file: Path | None = option(
        FEATURES, "File of arc templates, one a line, say h.upos|m.upos. (default: a ready-made set)", "--templates"
    )
    hash_bits: int | None = option(FEATURES, "There are 2^bits weights of arcs.", min=8, max=30)
    order: int | None = option(
        FEATURES, "2: score siblings and grandparents too; better, and several times slower.", min=1, max=2
    )
    candidates: int | None = option(FEATURES, "With --order 2: heads that are looked at for each word, at most.", min=1)
    sums: str | None = option(
        LEARNING, "With --order 2 and --loss crf: trw, a bound, or bethe, three times as fast and not as good. (default: trw)"
    )
    projective: bool | None = option(LABELS, "Trees without crossing arcs.")
    single_root: bool | None = option(LABELS, "One word alone hangs from the root. (default: if it is so in all training trees)")
    relations: bool | None = option(LABELS, "Learn the relations of arcs too.")
    first: int | None = option(FILES, "Train on the first so many sentences only.", min=1)


@dataclass
class Predict(common.Grouped, common.Predict):
    """Of ``predict``."""


@dataclass
class Evaluate(common.Grouped, common.Evaluate):
    """Of ``evaluate``."""


@dataclass
class ReportOptions(common.Grouped, common.ReportOptions):
    """Of ``report``."""


# -- answers ----------------------------------------------------------------------------------------------------------


def as_columns(parser: Any, treebank: Any) -> str:
    """The treebank as it was, with other trees."""
    return parser.parse(treebank)


def as_jsonl(parser: Any, treebank: Any) -> str:
    """One JSON object a sentence."""
    trees = parser.predict(treebank)
    rows = ({"words": treebank.forms(i), "heads": t.heads, "relations": t.relations} for i, t in enumerate(trees))
    return json_lines(rows)


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


class Parse(Command):
    """Dependency trees."""

    file = "Treebank, CoNLL-U or CoNLL-X; gz; '-' is stdin."
    details = "The head of every word, and the relation to it: the treebank has its trees in the columns HEAD and DEPREL."
    example = "partwise train parse en-train.conllu --dev en-dev.conllu -o parser.model"
    options = Options
    predict_options = Predict
    evaluate_options = Evaluate
    report_options = ReportOptions
    suspects_options = common.Suspects
    reading = ("encoding",)
    forms = {"columns": as_columns, "jsonl": as_jsonl, "tree": as_drawings, "svg": as_pictures}
    reader = "read_treebank"
    between = b"\n\n"
    tiny = "trees.conllu", TINY.replace(" ", "\t")
    usual = (
        ("--projective",),
        ("--order", "2"),
        ("--loss", "crf", "--projective"),
        ("--loss", "crf", "--order", "2"),
        ("--no-relations",),
    )

    def start(self, file: str, dev: str | None, options: Options, make: Callable[..., Any]) -> Training:
        from partwise.tasks.dependency.files import read_treebank

        parser = make()
        if options.template_file is not None:
            parser.templates = written_lines(options.template_file)
        treebank = read_treebank(file, options.encoding, options.first)
        held_out = None if dev is None else read_treebank(dev, options.encoding)

        def about() -> dict[str, Any]:
            return {
                "examples": len(treebank),
                "tokens": treebank.words.n_tokens,
                "labels": len(parser.classes_),
                "features": 1 << parser.hash_bits,
                "single_root": parser.single_root_,
            }

        describe = (
            f"{treebank.name}: {len(treebank):,} sentences, {treebank.words.n_tokens:,} words, {len(treebank.names)} relations"
        )
        return self.training(parser, treebank, held_out, describe, about, metric="uas")

    def count(self, data: Any) -> dict[str, int]:
        return {"sequences": len(data), "tokens": data.words.n_tokens}

    def scores(self, model: Any, data: Any) -> dict[str, Any]:
        from partwise.tasks.dependency.scores import attachment_scores

        trees = model.predict(data)
        heads = [head for tree in trees for head in tree.heads]
        truth = relations = None
        if len(model.classes_):
            truth = [data.names[k] if k >= 0 else "_" for k in data.relations.tolist()]
            relations = [name for tree in trees for name in tree.relations]
        given, bare = (
            attachment_scores(data.heads, heads, truth, relations, starts=data.words.starts, ignore=ignore)
            for ignore in (None, data.is_punctuation())
        )
        found: dict[str, Any] = {
            "uas": given.uas,
            "las": given.las,
            "label_accuracy": given.label_accuracy,
            "complete": given.complete,
        }
        found |= {"uas_no_punct": bare.uas, "las_no_punct": bare.las, "words": given.words, "sentences": given.sentences}
        return found | ({"proven": model.proven_} if model.order == 2 else {})

    def table(self, found: dict[str, Any]) -> str:
        lines = [
            f"{found['sentences']:,} sentences, {found['words']:,} words",
            f"{'':24}{'all words':>12}{'no punctuation':>16}",
        ]
        for name, key in (("UAS", "uas"), ("LAS", "las")):
            lines.append(f"{name:24}{percent(found[key]):>12}{percent(found[f'{key}_no_punct']):>16}")
        lines.append(f"{'relations':24}{percent(found['label_accuracy']):>12}")
        lines.append(f"{'sentences all right':24}{percent(found['complete']):>12}")
        if "proven" in found:
            lines.append(f"{'proven to be the best':24}{percent(found['proven']):>12}")
        return "\n".join(lines)

    def suspects(self, model: Any, file: str, options: Any, seconds: Seconds) -> Any:
        from partwise.tasks.common.judged_file import list_suspects
        from partwise.tasks.dependency.review import JudgedTreebank

        treebank = self.read(file, options)
        truth = None if options.truth is None else self.read(options.truth, options)
        seconds("read")
        return list_suspects(JudgedTreebank, model, treebank, truth, options, encoding=options.encoding)

    def read_labels(self, file: bytes, options: Any) -> tuple[Any, Any]:
        from partwise.tasks.dependency.files import read_treebank
        from partwise.tasks.dependency.review import without_trees

        treebank = read_treebank(file, options.encoding)
        return without_trees(treebank), (treebank.heads.tolist(), treebank.relations.tolist())


COMMAND = Parse()
