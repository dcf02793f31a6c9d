"""``partwise train align`` and what follows: from alignments to a model that aligns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.tasks.common import command_options as common
from partwise.tasks.common.command import Command, json_lines, written_lines
from partwise.tasks.common.command_options import FEATURES, FILES, LABELS, Training, option, percent


def read_scale(text: str) -> Any:
    """A number, or the word for the number of pairs."""
    return text if text == "pairs" else float(text)


@dataclass
class Options(common.Options):
    """Of ``train align``."""

    all_pairs: bool = option(FILES, "Of FASTA: all pairs of its rows, not two by two.", "--all-pairs", default=False)
    first: int | None = option(FILES, "Train on the first so many pairs only.", min=1)
    mode: str | None = option(LABELS, "global: from end to end; local: without ends that do not belong together.")
    core: str | None = option(
        LABELS, "Where a column 'core' marks reliable columns: they alone count for the cost, are known, or ignore the column."
    )
    precision_weight: float | None = option(
        LABELS, "Weight of wrong pairs against missed ones in the cost; hinge, ramp.", min=0.0, max=1.0
    )
    cost_scale: str | None = option(LABELS, "What missing all pairs costs: a number, or pairs: theirs.", read=read_scale)
    decode: str | None = option(LABELS, "best: highest score; mea: maximum expected accuracy; auto: mea if it can.")
    template_file: Path | None = option(
        FEATURES, "File of pair templates, one a line, say a.letter|b.letter. (default: a ready-made set)", "--templates"
    )
    alphabet: str | None = option(FEATURES, "The letters. (default: those of the file)")
    wildcard: str | None = option(FEATURES, "The letter that letters outside the alphabet are read as.")
    symmetric: bool | None = option(FEATURES, "Exchanging the two sequences changes nothing.")
    memory: float | None = option(None, "GB that one pair may take; a larger one is refused before any work.")


# -- answers ----------------------------------------------------------------------------------------------------------


def as_table(aligner: Any, pairs: Any) -> str:
    """A table: names, the two rows, and all other columns that the file had."""
    named = {key: values for key, values in pairs.fields.items() if key not in ("id1", "id2")}
    lines = ["\t".join(["id1", "id2", "row1", "row2", *named])]
    for k, found in enumerate(aligner.predict(pairs)):
        lines.append("\t".join([*pairs.names(k), *found.rows(), *(values[k] for values in named.values())]))
    return "\n".join([*lines, ""])


def as_fasta(aligner: Any, pairs: Any) -> str:
    """Aligned FASTA, two rows for each pair."""
    lines = []
    for k, found in enumerate(aligner.predict(pairs)):
        for name, row in zip(pairs.names(k), found.rows(), strict=True):
            lines += [f">{name}", row]
    return "\n".join([*lines, ""])


def as_jsonl(aligner: Any, pairs: Any) -> str:
    """One JSON object a pair."""
    rows = ({"ids": pairs.names(k), "rows": found.rows(), "pairs": found.pairs} for k, found in enumerate(aligner.predict(pairs)))
    return json_lines(rows)


def as_drawings(aligner: Any, pairs: Any) -> str:
    """Alignments drawn with a line between the rows, a blank line after each."""
    return "".join(found.draw(pairs.names(k)) + "\n\n" for k, found in enumerate(aligner.predict(pairs)))


class Align(Command):
    """Pairs of sequences."""

    file = "Alignments: a table with two rows a line, or aligned FASTA; gz; '-' is stdin."
    details = (
        "What to put opposite each other, and where gaps are. The file has two aligned rows a line, with a tab between them; or "
        "columns row1, row2 and, if there are reliable columns, core."
    )
    example = "partwise train align pairs.tsv --dev more.tsv -o aligner.model"
    options = Options
    forms = {"columns": as_table, "fasta": as_fasta, "jsonl": as_jsonl, "text": as_drawings}
    suspects_options = common.Suspects
    reading = ("encoding",)
    judged_file = "JudgedPairs"
    reader = "read_alignments"
    tiny = "pairs.tsv", "GATTACA\tGAT-ACA\nGATC-CA\tG-TCTCA\nACGT\tACGT\nAC-T\tACGT\n"
    usual = ("--mode", "local"), ("--loss", "crf", "--mode", "local"), ("--no-symmetric",)

    def start(self, file: str, dev: str | None, options: Options, make: Callable[..., Any]) -> Training:
        from partwise.tasks.alignment.files import read_alignments

        aligner = make(templates=None if options.template_file is None else written_lines(options.template_file))
        how: dict[str, Any] = {"encoding": options.encoding, "aligned": True, "all_pairs": options.all_pairs}
        pairs = read_alignments(file, **how, first=options.first)
        pairs.warn_of_names()
        held_out = None if dev is None else read_alignments(dev, **how)
        letters = int(pairs.lengths.sum())

        def about() -> dict[str, Any]:
            return {
                "examples": len(pairs),
                "tokens": letters,
                "labels": len(aligner.classes_),
                "features": int(aligner.weights_.size),
                "alphabet": "".join(aligner.classes_.tolist()),
                "templates": len(aligner.templates_),
            }

        describe = f"{pairs.name}: {len(pairs):,} pairs, {letters:,} letters"
        return self.training(aligner, pairs, held_out, describe, about, metric="recall")

    def read_to_judge(self, model: Any, file: str, options: Any) -> Any:
        from partwise.tasks.alignment.files import read_alignments

        return read_alignments(file, options.encoding, aligned=True)

    def read_labels(self, file: bytes, options: Any) -> tuple[Any, Any]:
        from partwise.tasks.alignment.files import read_alignments

        pairs = read_alignments(file, options.encoding, aligned=True)
        labels = [[own.tolist() for own in each] for each in (pairs.partners or [], pairs.core or [])]
        return (pairs.first, pairs.second, pairs.fields), labels

    def count(self, data: Any) -> dict[str, int]:
        return {"pairs": len(data), "letters": int(data.lengths.sum())}

    def scores(self, model: Any, data: Any) -> dict[str, Any]:
        from partwise.tasks.alignment.scores import pair_counts, recall_by_identity, recalls_of, scores_of

        if data.partners is None:
            raise ValueError(f"{data.name}: the rows of some pairs differ in length, so there is no alignment to compare with.")
        core = data.core if model.core != "ignore" else None
        counts = pair_counts(data.partners, [found.partners for found in model.predict(data)], core)
        by_identity = recall_by_identity(recalls_of(counts), data.identity())
        return {**scores_of(counts)._asdict(), "core": core is not None, "by_identity": by_identity}

    def table(self, found: dict[str, Any]) -> str:
        counted = "core pairs" if found["core"] else "pairs"
        lines = [f"{found['alignments']:,} alignments, {found['pairs']:,} true {counted}", f"{'':22}{'mean':>10}{'pooled':>10}"]
        for name in ("recall", "precision"):
            lines.append(f"{name:22}{percent(found[name]):>10}{percent(found[f'pooled_{name}']):>10}")
        lines += [f"{'F1':22}{percent(found['f1']):>10}", f"{'all pairs found':22}{percent(found['complete']):>10}", ""]
        lines.append(f"{'identity':22}{'recall':>10}{'alignments':>12}")
        for row in found["by_identity"]:
            shown = "-" if row["recall"] is None else percent(row["recall"])
            name = f"{row['above'] + (row['above'] > 0)} - {row['to']} %"
            lines.append(f"{name:22}{shown:>10}{row['alignments']:>12,}")
        return "\n".join(lines)


COMMAND = Align()
