"""``partwise train fold`` and what follows: from RNA sequences with structures to a model that folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from partwise.tasks.common import command_options as common
from partwise.tasks.common.command import Command, json_lines
from partwise.tasks.common.command_options import FILES, LABELS, Refusal, Training, option, percent

MOST_DRAWN = 20  # into one PNG


def read_pairs(text: str) -> Any:
    """Names of pairs with commas between them; every pair there is, for 'all'."""
    from itertools import product

    return tuple(map("".join, product("ACGU", repeat=2))) if text == "all" else tuple(text.split(","))


@dataclass
class Options(common.Options):
    """Of ``train fold``."""

    pairs: str | None = option(LABELS, "Which bases pair: names with commas between them, or 'all'.", read=read_pairs)
    max_loop: int | None = option(LABELS, "Unpaired bases of an internal loop or bulge, at most.", min=0, max=30)
    trade_off: float | None = option(
        LABELS, "Of losses with a cost: 0 counts missed pairs only, 1 wrong pairs only.", min=0.0, max=1.0
    )
    relative_cost: bool | None = option(LABELS, "Divide costs by the number of true pairs.")
    decode: str | None = option(LABELS, "best: highest score; mea: maximum expected accuracy; auto: mea if it can.")
    gamma: float | None = option(LABELS, "Of mea: the higher, the more pairs.")
    pseudoknots: str | None = option(LABELS, "Pairs that cross others: drop or refuse.")
    first: int | None = option(FILES, "Train on the first so many sequences only.", min=1)
    distinct: bool = option(FILES, "Leave out sequences that came before, letter by letter.", "--distinct", default=False)


# -- answers ----------------------------------------------------------------------------------------------------------


def as_fasta(folder: Any, data: Any) -> str:
    """A title, the sequence and the dot-bracket below it."""
    return data.with_structures(folder.predict(data))


def as_jsonl(folder: Any, data: Any) -> str:
    """One JSON object a sequence."""
    rows = (
        {"id": name, "sequence": sequence, "structure": structure}
        for name, sequence, structure in zip(data.names, data.sequences, folder.predict(data), strict=True)
    )
    return json_lines(rows)


def as_pictures(folder: Any, data: Any) -> str:
    """One SVG picture with all arc diagrams; true structures, where they are known, below the bases."""
    from partwise.files.svg_page import one_below_other
    from partwise.tasks.folding.drawing import as_svg

    rows = zip(data.sequences, folder.predict_partners(data), data.partners, data.names, strict=True)
    return one_below_other(as_svg(sequence, found, truth, title=name) for sequence, found, truth, name in rows)


def as_png(folder: Any, data: Any) -> bytes:
    """The same, as PNG."""
    from partwise.tasks.folding.drawing import as_png as draw

    if len(data) > MOST_DRAWN:
        raise Refusal(f"--format png draws at most {MOST_DRAWN} structures. Got {len(data):,}; take svg.")
    return draw(data.sequences, folder.predict_partners(data), data.partners, data.names)


def require_structures(data: Any, why: str) -> None:
    """Say which sequence has none."""
    if not data.has_structures:
        missing = next(i for i, partners in enumerate(data.partners) if partners is None)
        raise ValueError(f"{data.place(missing)}: there is no structure {why}.")


class Fold(Command):
    """RNA."""

    file = "FASTA with dot-brackets, or a table with the columns sequence and structure; gz."
    details = "Structures are dot-brackets below their sequences, or in a column of a table."
    example = "partwise train fold train.fasta --dev dev.fasta -o folder.model"
    options = Options
    forms = {"fasta": as_fasta, "jsonl": as_jsonl, "svg": as_pictures, "png": as_png}
    suspects_options = common.Suspects
    reading = ("encoding",)
    judged_file = "JudgedRna"
    reader = "read_rna"
    tiny = "rna.fasta", ">a\nGGGAAAACCC\n(((....)))\n>b\nGCGAAAGC\n((....))\n>c\nAAAAGGGUUUUCCCA\n....(((....))).\n"
    usual = ("--pairs", "all"), ("--loss", "crf", "--decode", "best"), ("--loss", "crf", "--decode", "mea")

    def start(self, file: str, dev: str | None, options: Options, make: Callable[..., Any]) -> Training:
        from partwise.tasks.folding.files import read_rna

        folder = make()
        data = read_rna(file, options.encoding, options.first, folder.pseudoknots)
        data = data.distinct() if options.distinct else data
        require_structures(data, "to learn from")
        held_out = None if dev is None else read_rna(dev, options.encoding)
        if held_out is not None:
            require_structures(held_out, "to compare with")

        def about() -> dict[str, Any]:
            return {
                "examples": len(data),
                "tokens": int(data.lengths.sum()),
                "labels": 0 if folder.pairs is None else len(folder.pairs),
                "features": int(folder.weights_.size),
                "pseudoknot_pairs": int(data.pseudoknots.sum()),
            }

        describe = f"{data.name}: {len(data):,} sequences, {int(data.lengths.sum()):,} bases, longest {int(data.lengths.max()):,}"
        return self.training(folder, data, held_out, describe, about, metric="f1")

    def read_to_judge(self, model: Any, file: str, options: Any) -> Any:
        data = self.read_for(model, file, options)
        require_structures(data, "to judge")
        return data

    def read_labels(self, file: bytes, options: Any) -> tuple[Any, Any]:
        data = self.read(file, options)  # type: ignore[arg-type]
        return (data.names, data.sequences, data.families, data.folds), data.structures

    def count(self, data: Any) -> dict[str, int]:
        return {"sequences": len(data), "bases": int(data.lengths.sum())}

    def scores(self, model: Any, data: Any) -> dict[str, Any]:
        from partwise.tasks.folding.scores import base_pair_scores

        require_structures(data, "to compare with")
        answers = model.predict_partners(data)
        exact, slips = (base_pair_scores(data.partners, answers, slips=slips) for slips in (False, True))
        found: dict[str, Any] = {"f1": exact.f1, "sensitivity": exact.sensitivity, "selectivity": exact.selectivity}
        found |= {"recall": exact.sensitivity, "precision": exact.selectivity, "pooled_f1": exact.pooled_f1}
        found |= {"f1_slips": slips.f1, "sensitivity_slips": slips.sensitivity, "selectivity_slips": slips.selectivity}
        return found | {
            "structures": len(data),
            "complete": exact.complete,
            "pairs": exact.pairs,
            "pseudoknot_pairs": int(data.pseudoknots.sum()),
        }

    def table(self, found: dict[str, Any]) -> str:
        lines = [
            f"{found['structures']:,} structures, {found['pairs']:,} true pairs",
            f"{'':24}{'exactly':>12}{'or one base off':>18}",
        ]
        for name in ("sensitivity", "selectivity", "f1"):
            lines.append(f"{'F1' if name == 'f1' else name:24}{percent(found[name]):>12}{percent(found[f'{name}_slips']):>18}")
        lines.append(f"{'structures all right':24}{percent(found['complete']):>12}")
        if found["pseudoknot_pairs"]:
            lines.append(
                f"{found['pseudoknot_pairs']:,} pairs of pseudoknots are not counted: nested structures cannot have them"
            )
        return "\n".join(lines)


COMMAND = Fold()
