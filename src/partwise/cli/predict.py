"""``partwise predict``: a model's answers for a file, as the file would have them."""

from __future__ import annotations

import contextlib
import gzip
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from partwise.cli.common import in_words, print_json
from partwise.cli.model_verbs import all_options, load, options_for
from partwise.cli.options import JOBS, QUIET, Parameter, Verb
from partwise.cli.paths import check_paths, is_file
from partwise.cli.tables import is_table_name, predict_table, text_of
from partwise.files.whole_file import whole_file
from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import OUTPUT, Refusal
from partwise.tasks.common.registry import TASKS, RegisteredTask

HELP = """Label, parse, align, fold, rank: what a model says about a file.

Labels come as one more column of the text, trees in the place of those that were there.

    partwise predict model test.txt -o labelled.txt
"""


def verb(tasks: Sequence[RegisteredTask] = TASKS) -> Verb:
    """The verb, with the options of these tasks."""
    where = "Where to write; compressed if it ends in .gz; a table with more columns, if in .parquet. (default: stdout)"
    parameters = [
        Parameter("model", Path, "Model file."),
        Parameter("file", str, "File of the kind that the model was trained on; gz; '-' is stdin."),
        Parameter("output", Path | None, where, ("--output", "-o"), None, OUTPUT),
        *all_options("predict", tasks),
        JOBS,
        Parameter("as_json", bool, "Print counts and times as JSON on stdout; needs --output.", ("--json",), False),
        QUIET,
    ]
    return Verb("predict", HELP, parameters, run)


@in_words
def run(model: Path, file: str, output: Path | None, jobs: int, as_json: bool, quiet: bool, **given: Any) -> None:
    """Load, read, answer, write."""
    if as_json and not is_file(output):
        raise Refusal("--json prints on stdout, and so do the answers: say with --output where to write them.")
    seconds = Seconds()
    check_paths({"the model": model, "the file to read": file}, {"--output": output})
    loaded, task = load(model, jobs)
    options = options_for(task, "predict", given, model)
    check_paths(task.command.inputs(options), {"--output": output})
    seconds("load")
    with writing(output) as write:
        if is_table_name(output):
            counts = predict_table(task, loaded, file, options, write, seconds)
        else:
            counts = task.command.predict(loaded, text_of(task, file, options), options, write, seconds)
    took = seconds.total()
    if as_json:
        print_json({"file": file, "output": str(output), **counts, "seconds": took})
    elif is_file(output) and not quiet:
        said = ", ".join(f"{number:,} {name}" for name, number in counts.items() if isinstance(number, int))
        print(f"wrote {output}: {said}, {took['total']:.2f} s", file=sys.stderr)


@contextlib.contextmanager
def writing(path: Path | None) -> Iterator[Callable[[bytes], Any]]:
    """A function that writes bytes: to stdout, or to a file that is there as a whole in the end, or not at all."""
    if path is None or not is_file(path):
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(whole_file(path))
        if path.suffix == ".gz":
            file = stack.enter_context(gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0))
        yield file.write
