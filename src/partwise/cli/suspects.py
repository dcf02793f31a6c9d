"""``partwise suspects``: labels of a file that are probably wrong, worst first."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from partwise.cli.clusters import working_on
from partwise.cli.common import in_words, print_json, show, write
from partwise.cli.model_verbs import all_options, alone, load, options_for
from partwise.cli.options import CLUSTER, JSON, QUIET, Parameter, Verb
from partwise.cli.paths import check_paths, is_file
from partwise.cli.progress import ProgressLines, spinner, warnings_as_notes
from partwise.cli.review_page import made_page, require_jinja
from partwise.files.parquet import is_parquet
from partwise.files.text_edits import EditableText
from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import OUTPUT, Refusal

SHOWN = 20  # rows of the table, unless told otherwise
HELP = """Find labels that are probably wrong, worst first, each with the probability that it is.

Of a file that has labels, the one that the model was trained on, say, whatever its task is:

    partwise suspects model train.txt

Models learn wrong labels, too: so each fifth of the file is judged by models trained on the rest, with the features and
parameters of yours. That takes ten trainings. Of a column file (train tag) without a model:

    partwise suspects --train train.txt

A page to look at them one by one and decide; then partwise repair writes the corrected file:

    partwise suspects model train.txt --precision 0.9 --html review.html
"""


def verb() -> Verb:
    """The verb."""
    where = "Write all of them here, tab-separated, a line each; '-': stdout."
    parameters = [
        Parameter("model", Path, "Model file; or, with --train, the file itself."),
        Parameter("file", str | None, "File with the labels to judge; gz; '-' is stdin.", default=None),
        *all_options("suspects"),
        Parameter("output", Path | None, where, ("--output", "-o"), None, OUTPUT),
        CLUSTER._replace(text="Train those who judge on a dask cluster: tcp://scheduler:8786, or local[4]: four processes here."),
        JSON,
        QUIET,
    ]
    return Verb("suspects", HELP, parameters, run)


@in_words
def run(
    model: Path, file: str | None, output: Path | None, cluster: str | None, as_json: bool, quiet: bool, **given: Any
) -> None:
    """Load or train, read, judge, list."""
    from partwise.tasks.common.suspects import watched

    seconds, by_itself = Seconds(), alone("suspects", given)
    if (file is None) == (by_itself is None):
        raise Refusal("Give a model and a file; or, with --train, a file alone.")
    if given["folds"] == 1:
        raise Refusal("--folds must be 0, or at least 2: a part is judged by what was learnt from the others.")
    if given["precision"] is not None and not 0 < given["precision"] <= 1:
        raise Refusal(f"--precision must be more than 0 and at most 1. Got {given['precision']:g}.")
    if as_json and str(output) == "-":
        raise Refusal("--json prints on stdout: say with --output where to write the suspects.")
    html = given["html"]
    check_paths({"the model": model, "the file to read": file, "--truth": given["truth"]}, {"--output": output, "--html": html})
    if html is not None and not is_file(html):
        raise Refusal("--html is a file for a browser: give it a name.")
    source = None
    if html is not None:
        require_jinja()
        source = EditableText.read(file or str(model), given["encoding"])
    if by_itself is not None:
        loaded, (task, options) = None, by_itself
    else:
        loaded, task = load(model, given["n_jobs"])
        options = options_for(task, "suspects", given, model)
        seconds("load")
    if task.table is not None and task.table.is_text and is_parquet(file or model):
        raise Refusal(f"{file or model} is a parquet file, and suspects are told by lines of text: write it as text first.")
    with (
        warnings_as_notes(ProgressLines(quiet).say),
        spinner(f"reading {file or model}", quiet) as update,
        watched(update),
        working_on(cluster),
    ):
        listing = task.command.suspects(loaded, file or str(model), options, seconds)
    seconds("judge")
    top = options.top
    if output is not None:
        write(output, listing.as_text(top))
    if html is not None and source is not None:
        write(html, page_of(task.verb, listing, source, top))
    if not quiet and str(output) != "-":
        more = [] if html is None else [f"wrote {html}: open it in a browser"]
        show([*said(listing, top), *more], sys.stderr if as_json else sys.stdout)
    if as_json:
        found = {
            "file": file or str(model),
            "model": None if file is None else str(model),
            **listing.about,
            "listed": len(listing.rows),
            **({} if html is None else {"html": str(html)}),
            "suspects": [row.as_dict() for row in listing.rows[:top]],
        }
        print_json({**found, **({} if listing.truth is None else {"truth": listing.truth}), "seconds": seconds.total()})


def page_of(task: str, listing: Any, source: EditableText, top: int | None) -> bytes:
    """The page of the suspects."""
    if listing.review is None:
        raise Refusal(f"--html: the suspects of {source.name} cannot be shown in a page yet.")
    return made_page(listing.review(source, top).packed(task, source, listing.in_words()[0]), source)


def said(listing: Any, top: int | None) -> list[Any]:
    """What people are told: how many there are, and the first of them."""
    lines, n = listing.in_words(), min(top or SHOWN, len(listing.rows))
    if n:
        lines.append(listing.table(n))
    else:
        lines.append("none is so probably wrong as to be listed; a lower --precision lists those in most doubt")
    if n < len(listing.rows):
        lines.append(f"the first {n} of {len(listing.rows):,}; --top N for more, -o FILE for all")
    return lines
