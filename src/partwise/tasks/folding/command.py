"""Models that fold RNA, on the command line: see `partwise.cli.tasks`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from partwise.cli.common import Refusal
from partwise.cli.tasks import percent

MOST_DRAWN = 20  # into one PNG
CANONICAL = ("AU", "UA", "CG", "GC", "GU", "UG")


def read(file: str, encoding: str) -> Any:
    """Sequences, with their structures if there are any."""
    from partwise.tasks.folding.files import read_rna

    return read_rna(file, encoding)


def count(data: Any) -> dict[str, int]:
    """How much it is."""
    return {"sequences": len(data), "bases": int(data.lengths.sum())}


def as_fasta(folder: Any, data: Any) -> str:
    """A title, the sequence and the dot-bracket below it."""
    return data.with_structures(folder.predict(data))


def as_jsonl(folder: Any, data: Any) -> str:
    """One JSON object a sequence."""
    rows = (
        {"id": name, "sequence": sequence, "structure": structure}
        for name, sequence, structure in zip(data.names, data.sequences, folder.predict(data), strict=True)
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_pictures(folder: Any, data: Any) -> str:
    """One SVG picture with all arc diagrams; true structures, where they are known, below the bases."""
    from partwise.files.svg_page import one_below_other
    from partwise.tasks.folding.drawing import as_svg
    from partwise.tasks.folding.files import read_dot_bracket

    folded = [read_dot_bracket(structure)[0] for structure in folder.predict(data)]
    rows = zip(data.sequences, folded, data.partners, data.names, strict=True)
    return one_below_other(as_svg(sequence, found, truth, title=name) for sequence, found, truth, name in rows)


def as_png(folder: Any, data: Any) -> bytes:
    """The same, as PNG."""
    import io

    from partwise.tasks.common.plots import new_figure
    from partwise.tasks.folding.drawing import draw, reach_of
    from partwise.tasks.folding.files import read_dot_bracket

    if len(data) > MOST_DRAWN:
        raise Refusal(f"--format png draws at most {MOST_DRAWN} structures. Got {len(data):,}; take svg.")
    folded = [read_dot_bracket(structure)[0] for structure in folder.predict(data)]
    heights = [sum(reach_of(some) for some in both if some is not None) for both in zip(folded, data.partners, strict=True)]
    width = min(0.1 * max(int(data.lengths.max(initial=0)), 60), 30.0)
    scale = width / max(int(data.lengths.max(initial=0)), 60)
    figure = new_figure(width, sum(scale * height + 0.5 for height in heights))
    figure.get_layout_engine().set(h_pad=0.0)
    axes = figure.subplots(len(data), squeeze=False, height_ratios=heights)[:, 0]
    for axis, sequence, found, truth, name in zip(axes, data.sequences, folded, data.partners, data.names, strict=True):
        draw(axis, sequence, found, truth, name)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100)
    return out.getvalue()


FORMS: dict[str, Callable[[Any, Any], str | bytes]] = {"fasta": as_fasta, "jsonl": as_jsonl, "svg": as_pictures, "png": as_png}


def require_structures(data: Any, why: str) -> None:
    """Say which sequence has none."""
    if not data.has_structures:
        missing = next(i for i, partners in enumerate(data.partners) if partners is None)
        raise ValueError(f"{data.place(missing)}: there is no structure {why}.")


def scores(folder: Any, data: Any) -> dict[str, Any]:
    """Sensitivity, selectivity and F1 of base pairs, with slips of one base and without."""
    from partwise.tasks.folding.files import read_dot_bracket
    from partwise.tasks.folding.scores import base_pair_scores

    require_structures(data, "to compare with")
    answers = [read_dot_bracket(structure)[0] for structure in folder.predict(data)]
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


def as_table(found: dict[str, Any]) -> str:
    """For people."""
    lines = [
        f"{found['structures']:,} structures, {found['pairs']:,} true pairs",
        f"{'':24}{'exactly':>12}{'or one base off':>18}",
    ]
    for name in ("sensitivity", "selectivity", "f1"):
        lines.append(f"{'F1' if name == 'f1' else name:24}{percent(found[name]):>12}{percent(found[f'{name}_slips']):>18}")
    lines.append(f"{'structures all right':24}{percent(found['complete']):>12}")
    if found["pseudoknot_pairs"]:
        lines.append(f"{found['pseudoknot_pairs']:,} pairs of pseudoknots are not counted: nested structures cannot have them")
    return "\n".join(lines)


def look(folder: Any, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is; with `top`, the highest and lowest weights; a heat map of stacks and curves of lengths."""
    from partwise.losses.records import get_loss

    named = folder.weights_by_name()
    about: dict[str, Any] = {
        "weights": len(named),
        "weights_not_zero": sum(value != 0.0 for value in named.values()),
        "pairs": "all" if folder.pairs is None else list(folder.pairs),
        "max_loop": folder.max_loop,
        "loss": get_loss(folder.loss).name,
        "C": folder.C,
        "solver": folder.solver_,
        "decode": folder.decode,
        "gamma": folder.gamma,
        "training": folder.training_,
        "stacks": {name.removeprefix("stack "): named[name] for name in stack_names()},
    }
    lines = [f"{name:18}{value}" for name, value in about.items() if name not in ("stacks", "training")]
    lines += ["", "stacks, by 5'-3' / 3'-5' strand; the higher, the likelier", *stack_table(folder)]
    if top is not None:
        ordered = sorted(named.items(), key=lambda item: -item[1])
        about["highest"], about["lowest"] = dict(ordered[:top]), dict(ordered[::-1][:top])
        for title in ("highest", "lowest"):
            lines += ["", title, *(f"{value:10.3f}  {name}" for name, value in about[title].items())]
    if picture is not None:
        draw_stacks(folder, picture)
        lines.append(f"wrote {picture}")
    return about, "\n".join(lines)


def stack_names() -> list[str]:
    """Of stacks of canonical pairs, sorted."""
    from partwise.structures.folding.loops import BASES, STACK, tying

    tied = tying()
    codes = [4 * BASES.index(pair[0]) + BASES.index(pair[1]) for pair in CANONICAL]
    return sorted({tied.names[tied.members[tied.ptr[STACK + 16 * outer + inner]]] for outer in codes for inner in codes})


def stacks(folder: Any) -> Any:
    """Scores of a pair (columns) on a pair (rows), canonical ones."""
    from partwise.structures.folding.loops import BASES, STACK, tying

    entries = tying().entries(folder.weights_)
    codes = [4 * BASES.index(pair[0]) + BASES.index(pair[1]) for pair in CANONICAL]
    return entries[[[STACK + 16 * outer + inner for inner in codes] for outer in codes]]


def stack_table(folder: Any) -> list[str]:
    """Lines of text."""
    rows = [f"{name:>6}" + "".join(f"{value:8.2f}" for value in row) for name, row in zip(CANONICAL, stacks(folder), strict=True)]
    return [" " * 6 + "".join(f"{name:>8}" for name in CANONICAL), *rows]


def draw_stacks(folder: Any, path: Path) -> None:
    """Stacking energies as a heat map, red for likely, and what lengths of loops cost."""
    from partwise.structures.folding.loops import BULGE, HAIRPIN, INTERNAL, LONGEST, SHORTEST, tying
    from partwise.tasks.common.plots import heat_map, new_figure, save

    entries = tying().entries(folder.weights_)
    figure = new_figure(11.0, 4.6)
    left, right = figure.subplots(1, 2)
    image = heat_map(left, stacks(folder), CANONICAL, CANONICAL)
    left.set(title="Stacks", xlabel="inner pair", ylabel="outer pair")
    figure.colorbar(image, ax=left, shrink=0.7)
    balanced = [entries[INTERNAL + (length // 2) * (LONGEST + 1) + length - length // 2] for length in range(2, LONGEST + 1)]
    for name, begin, values in (
        ("hairpin", SHORTEST, entries[HAIRPIN + SHORTEST : HAIRPIN + LONGEST + 1]),
        ("bulge", 1, entries[BULGE + 1 : BULGE + LONGEST + 1]),
        ("internal loop", 2, balanced),
    ):
        right.plot(range(begin, LONGEST + 1), values, marker=".", label=name)
    right.set(title="Lengths of loops", xlabel="unpaired bases", ylabel="score")
    right.legend()
    save(figure, path)
