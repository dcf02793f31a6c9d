"""``partwise predict`` and ``partwise evaluate`` for models that parse."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from partwise.cli.common import Refusal, print_json, write


def load_parser(path: Path, jobs: int) -> Any:
    """A model made by ``partwise train parse`` or `DependencyParser.save`, without importing scikit-learn."""
    from partwise import model_file

    parser = model_file.load(path, plain=True)
    parser.n_jobs = jobs
    return parser


def predict_trees(
    model: Path, file: str, output: Path | None, form: str, encoding: str, jobs: int, as_json: bool, quiet: bool
) -> None:
    """Write the treebank with predicted trees in it, or the trees in another form."""
    from partwise.datasets.treebanks import read_treebank

    begun = time.perf_counter()
    parser = load_parser(model, jobs)
    seconds = {"load": time.perf_counter() - begun}
    treebank = read_treebank(file, encoding)
    seconds["read"] = time.perf_counter() - begun - sum(seconds.values())
    text = FORMS[form](parser, treebank)
    seconds["label"] = time.perf_counter() - begun - sum(seconds.values())
    content = text.encode(encoding)
    if output is not None and output.suffix == ".gz":
        import gzip

        content = gzip.compress(content, mtime=0)
    write(output, content)
    seconds["total"] = time.perf_counter() - begun
    n = treebank.words.n_tokens
    if as_json:
        counts = {"file": file, "output": str(output), "sequences": len(treebank), "tokens": n}
        print_json({**counts, "seconds": seconds, "tokens_per_second": n / max(seconds["label"], 1e-9)})
    elif output is not None and not quiet:
        print(f"wrote {output}: {len(treebank):,} sentences, {n:,} words, {seconds['total']:.2f} s", file=sys.stderr)


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
    import re

    from partwise.tree_pictures import as_svg

    pictures = [as_svg(treebank.forms(i), t.heads, t.relations) for i, t in enumerate(parser.predict(treebank))]
    top, widest, parts = 0, 0, []
    for picture in pictures:
        width, height = (int(re.search(rf'{name}="(\d+)"', picture)[1]) for name in ("width", "height"))  # type: ignore[index]
        parts.append(picture.replace("<svg ", f'<svg y="{top}" ', 1))
        top, widest = top + height, max(widest, width)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{widest}" height="{top}">\n'
    return head + "".join(parts) + "</svg>\n"


FORMS: dict[str, Callable[[Any, Any], str]] = {
    "columns": as_columns,
    "jsonl": as_jsonl,
    "tree": as_drawings,
    "svg": as_pictures,
}


def evaluate_trees(model: Path, file: str | None, encoding: str, jobs: int, as_json: bool, quiet: bool) -> None:
    """UAS and LAS."""
    from partwise.cli.train_parse import scores
    from partwise.datasets.treebanks import read_treebank

    if file is None:
        raise Refusal("Give a model and a treebank.")
    begun = time.perf_counter()
    parser = load_parser(model, jobs)
    seconds = {"load": time.perf_counter() - begun}
    treebank = read_treebank(file, encoding)
    seconds["read"] = time.perf_counter() - begun - sum(seconds.values())
    parser.predict([[dict.fromkeys(parser.columns_, "_")]])  # compiled code is loaded when first used: not what speed is about
    seconds["start"] = time.perf_counter() - begun - sum(seconds.values())
    clock = time.perf_counter()
    parser.predict(treebank)
    speed = treebank.words.n_tokens / max(time.perf_counter() - clock, 1e-9)
    found = scores(parser, treebank)
    seconds["label"] = time.perf_counter() - begun - sum(seconds.values())
    seconds["total"] = time.perf_counter() - begun
    if not (quiet and as_json):
        print(as_table(found), file=sys.stderr if as_json else sys.stdout)
    if as_json:
        print_json({"model": str(model), "file": treebank.name, **found, "seconds": seconds, "tokens_per_second": speed})


def as_table(found: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{found['sentences']:,} sentences, {found['words']:,} words", f"{'':24}{'all words':>12}{'no punctuation':>16}"]
    for name, key in (("UAS", "uas"), ("LAS", "las")):
        lines.append(f"{name:24}{percent(found[key]):>12}{percent(found[f'{key}_no_punct']):>16}")
    lines.append(f"{'relations':24}{percent(found['label_accuracy']):>12}")
    lines.append(f"{'sentences all right':24}{percent(found['complete']):>12}")
    return "\n".join(lines)


def percent(value: float) -> str:
    """Two digits, or a dash."""
    return "-" if value != value else f"{100 * value:.2f} %"
