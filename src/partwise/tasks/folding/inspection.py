"""What a folder has learnt: its weights by name, stacks as a table and as a heat map, and what lengths of loops cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from partwise.structures.folding.loops import BASES, BULGE, HAIRPIN, INTERNAL, LONGEST, SHORTEST, STACK, tying

CANONICAL = ("AU", "UA", "CG", "GC", "GU", "UG")


def look(folder: Any, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is; with `top`, the highest and lowest weights; a heat map of stacks and curves of lengths."""
    named = folder.weights_by_name()
    about: dict[str, Any] = {
        "weights": len(named),
        "weights_not_zero": sum(value != 0.0 for value in named.values()),
        "pairs": "all" if folder.pairs is None else list(folder.pairs),
        "max_loop": folder.max_loop,
        **folder._how_learnt(),
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
    tied = tying()
    codes = [4 * BASES.index(pair[0]) + BASES.index(pair[1]) for pair in CANONICAL]
    return sorted({tied.names[tied.members[tied.ptr[STACK + 16 * outer + inner]]] for outer in codes for inner in codes})


def stacks(folder: Any) -> Any:
    """Scores of a pair (columns) on a pair (rows), canonical ones."""
    entries = tying().entries(folder.weights_)
    codes = [4 * BASES.index(pair[0]) + BASES.index(pair[1]) for pair in CANONICAL]
    return entries[[[STACK + 16 * outer + inner for inner in codes] for outer in codes]]


def stack_table(folder: Any) -> list[str]:
    """Lines of text."""
    rows = [f"{name:>6}" + "".join(f"{value:8.2f}" for value in row) for name, row in zip(CANONICAL, stacks(folder), strict=True)]
    return [" " * 6 + "".join(f"{name:>8}" for name in CANONICAL), *rows]


def draw_stacks(folder: Any, path: Path) -> None:
    """Stacking energies as a heat map, red for likely, and what lengths of loops cost."""
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
