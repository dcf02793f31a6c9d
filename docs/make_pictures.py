"""The pictures of the README: ``python docs/make_pictures.py``, after ``make docs`` has run the gallery.

Small pictures of the tasks are those of the gallery. The chart of speed is drawn from the first table of docs/benchmarks.md,
which ``python -m benchmarks chunking --repeat 3`` gives.
"""

from __future__ import annotations

import re
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).parent
#: example: which of its pictures
TASKS = {
    "digit_words": 1, "chunking_weights": 1, "sparse_entities": 1, "hidden_states": 1, "parsing": 1, "brackets": 1, "pictures": 1,
    "aligning": 1, "folding": 1, "ranking": 1, "wrong_labels": 1, "own_structure": 1, "segments": 1,
}  # fmt: skip
WIDE = {"digit_words": 700}
OURS, THEIRS = "#3b76af", "#c9c9c9"


def small_pictures() -> None:
    """Pictures of the gallery, as small as a table wants them."""
    (DOCS / "images" / "tasks").mkdir(exist_ok=True)
    for name, number in TASKS.items():
        with Image.open(DOCS / "gallery" / "images" / f"sphx_glr_plot_{name}_{number:03d}.png") as picture:
            picture = picture.convert("RGB")
            width = WIDE.get(name, 240)
            picture = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
            picture.quantize(255 if name in WIDE else 96).save(DOCS / "images" / "tasks" / f"{name}.png", optimize=True)


def speed_rows() -> list[tuple[str, float, float]]:
    """Contender, CPU seconds and F1, from the table."""
    table = (
        (DOCS / "benchmarks.md").read_text(encoding="utf-8").partition("| | CPU s | peak MB | test F1 |")[2].partition("\n\n")[0]
    )
    rows = []
    for line in table.splitlines()[2:]:
        name, seconds, _, f1, *_ = [cell.strip() for cell in line.strip("|").split("|")]
        name = re.sub(r"`|\s*\*$|, attributes streamed into it", "", name) + (" (streamed)" if "streamed" in name else "")
        rows.append(("partwise" if name.startswith("partwise") else name, float(seconds.replace(",", "")), float(f1)))
    return rows


def speed_chart() -> None:
    """Bars of CPU seconds on a logarithmic axis, each with its F1."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = speed_rows()
    first = next(k for k, (name, *_) in enumerate(rows) if name == "partwise")
    rows = [row for k, row in enumerate(rows) if row[0] != "partwise" or k == first]
    rows = [row for row in rows if "dense" not in row[0]]
    figure, axis = plt.subplots(figsize=(8, 0.42 * len(rows) + 0.9), layout="constrained")
    for k, (name, seconds, f1) in enumerate(rows):
        ours = name == "partwise"
        axis.barh(k, seconds, color=OURS if ours else THEIRS, height=0.7)
        axis.text(seconds * 1.05, k, f"{seconds:.3g} s   F1 {f1:.2f}", va="center", size=9, weight="bold" if ours else "normal")
    axis.set_yticks(range(len(rows)), [name for name, *_ in rows])
    axis.invert_yaxis()
    axis.set(xscale="log", xlim=(1, 400), xlabel="CPU seconds, column file to saved model (logarithmic)")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(DOCS / "images" / "speed.png", dpi=110)


if __name__ == "__main__":
    small_pictures()
    speed_chart()
