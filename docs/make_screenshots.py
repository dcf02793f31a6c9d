"""The pictures of pages in these docs.

``python docs/make_screenshots.py`` makes them anew. It needs the extras ``html`` and ``dev``, and chromium with its driver. The
sentences are those of ``partwise demo --practice``, with random labels in a tenth of them; for the small picture of the README,
with other types of a tenth of the chunks.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from typer.testing import CliRunner

from partwise.cli.app import app
from partwise.datasets import plant_errors

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from browser import chromium, press, resize  # noqa: E402

COLOURS = 160  # of a picture: text on plain ground needs no more


def run(*words: str) -> None:
    """A command that must succeed."""
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    if done.exit_code:
        raise SystemExit(done.output)


def with_errors(text: str, how: str) -> str:
    """A column file with errors in a tenth of its sentences, or chunks."""
    sentences = [[line.rpartition(" ") for line in block.split("\n")] for block in text.strip().split("\n\n")]
    noisy = plant_errors([[label for _, _, label in sentence] for sentence in sentences], 0.1, 0, how).y
    blocks = (
        "\n".join(f"{before} {label}" for (before, _, _), label in zip(sentence, labels, strict=True))
        for sentence, labels in zip(sentences, noisy, strict=True)
    )
    return "\n\n".join(blocks) + "\n"


@contextlib.contextmanager
def pages() -> Iterator[Path]:
    """A folder with the page of suspects and the report."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        try:
            run("demo", "--practice", ".")
            for name, how, page in (("types.txt", "type", "review_small"), ("noisy.txt", "sentence", "review")):
                Path(name).write_text(with_errors(Path("train.txt").read_text(), how))
                run("train", "tag", name, "--loss", "ramp", "-o", "robust", "-q")
                run("suspects", "robust", name, "--folds", "5", "--html", f"{page}.html", "-q")
            run("train", "tag", "noisy.txt", "--loss", "crf", "-o", "model", "-q")
            run("report", "model", "test.txt", "--html", "report.html", "-q")
            yield folder
        finally:
            os.chdir(before)


def keep(png: bytes, path: Path) -> None:
    """A picture with few colours, which is small."""
    path.parent.mkdir(exist_ok=True)
    Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


def main() -> None:
    """Open the pages, and keep what is seen of them."""
    with pages() as folder, chromium(folder) as driver:
        for name, width, height, keys in (
            ("review", 1280, 760, "jj"),
            ("review_small", 900, 520, "aj"),
            ("report", 1280, 1060, ""),
        ):
            resize(driver, width, height)
            driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
            driver.get((folder / f"{name}.html").as_uri())
            press(driver, *keys)
            keep(driver.get_screenshot_as_png(), ROOT / "docs" / "images" / f"{name}.png")


if __name__ == "__main__":
    main()
