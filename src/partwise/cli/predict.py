"""``partwise predict``: a model's answers for a file, as the file would have them."""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from partwise.cli.clusters import working_on
from partwise.cli.common import in_words, print_json
from partwise.cli.model_verbs import all_options, load, loaded_once, options_for
from partwise.cli.options import CLUSTER, JOBS, QUIET, Parameter, Verb
from partwise.cli.paths import check_paths, is_file
from partwise.cli.tables import is_table_name, predict_table, text_of
from partwise.engine.cluster_map import mapped
from partwise.files.whole_file import whole_file
from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import OUTPUT, Refusal
from partwise.tasks.common.registry import TASKS, RegisteredTask

HELP = """Label, parse, align, fold, rank: what a model says about a file.

Labels come as one more column of the text, trees in the place of those that were there.

    partwise predict model test.txt -o labelled.txt

Several files go into a folder, each under its own name; with --cluster its workers read, label and write them:

    partwise predict model part-*.gz -o labelled/ --cluster tcp://scheduler:8786
"""


def verb(tasks: Sequence[RegisteredTask] = TASKS) -> Verb:
    """The verb, with the options of these tasks."""
    where = (
        "Where to write; compressed if it ends in .gz; a table with more columns, if in .parquet; of several files, a folder. "
        "(default: stdout)"
    )
    parameters = [
        Parameter("model", Path, "Model file."),
        Parameter("files", list[str], "File of the kind that the model was trained on; gz; '-' is stdin. Or several."),
        Parameter("output", Path | None, where, ("--output", "-o"), None, OUTPUT),
        *all_options("predict", tasks),
        JOBS,
        CLUSTER,
        Parameter("as_json", bool, "Print counts and times as JSON on stdout; needs --output.", ("--json",), False),
        QUIET,
    ]
    return Verb("predict", HELP, parameters, run)


@in_words
def run(
    model: Path, files: list[str], output: Path | None, jobs: int, cluster: str | None, as_json: bool, quiet: bool, **given: Any
) -> None:
    """Load, read, answer, write."""
    if as_json and not is_file(output):
        raise Refusal("--json prints on stdout, and so do the answers: say with --output where to write them.")
    seconds = Seconds()
    if len(files) > 1 or cluster is not None:
        predict_files(model, files, output, jobs, cluster, as_json, quiet, given, seconds)
        return
    (file,) = files
    check_paths({"the model": model, "the file to read": file}, {"--output": output})
    loaded, task = load(model, jobs)
    options = options_for(task, "predict", given, model)
    check_paths(task.command.inputs(options), {"--output": output})
    seconds("load")
    counts = answer(task, loaded, file, output, options, seconds)
    took = seconds.total()
    if as_json:
        print_json({"file": file, "output": str(output), **counts, "seconds": took})
    elif is_file(output) and not quiet:
        said = ", ".join(f"{number:,} {name}" for name, number in counts.items() if isinstance(number, int))
        print(f"wrote {output}: {said}, {took['total']:.2f} s", file=sys.stderr)


def answer(task: RegisteredTask, loaded: Any, file: str, output: Path | None, options: Any, seconds: Seconds) -> dict[str, Any]:
    """Write the answers to a file; returns how much it was."""
    with writing(output) as write:
        if is_table_name(output):
            return predict_table(task, loaded, file, options, write, seconds)
        return task.command.predict(loaded, text_of(task, file, options), options, write, seconds)


def predict_files(
    model: Path,
    files: Sequence[str],
    output: Path | None,
    jobs: int,
    cluster: str | None,
    as_json: bool,
    quiet: bool,
    given: dict[str, Any],
    seconds: Seconds,
) -> None:
    """The same for several files, here or on a cluster: answers go into a folder."""
    if output is None or not is_file(output) or "-" in files:
        raise Refusal("The answers to several files go into a folder: name it with --output, and the files by their names.")
    if output.exists() and not output.is_dir():
        raise Refusal(f"--output {output} is a file; the answers to several files go into a folder.")
    places = [output / Path(file).name for file in files]
    twice = next((place.name for k, place in enumerate(places) if place in places[:k]), None)
    if twice is not None:
        raise Refusal(f"Two of the files are called {twice}: in one folder they would be one.")
    loaded, task = load(model, jobs)
    options = options_for(task, "predict", given, model)
    output.mkdir(parents=True, exist_ok=True)
    for file, place in zip(files, places, strict=True):
        check_paths({"the model": model, "the file to read": file, **task.command.inputs(options)}, {"--output": place})
    del loaded
    seconds("load")
    counts: Counter[str] = Counter()
    pieces = [(os.path.abspath(file), os.path.abspath(place)) for file, place in zip(files, places, strict=True)]
    with working_on(cluster):
        for k, found in enumerate(mapped(answer_file, pieces, os.path.abspath(model), options, jobs)):
            counts.update(found)
            if not quiet:
                print(f"wrote {places[k]} ({k + 1} of {len(files)})", file=sys.stderr)
    seconds("label")
    if as_json:
        print_json({"files": list(files), "output": str(output), **counts, "seconds": seconds.total()})


def answer_file(file: tuple[str, str], model: str, options: Any, jobs: int) -> dict[str, int]:
    """Write the answers to one of many files; returns how much it was."""
    loaded, task = loaded_once(model, os.stat(model).st_mtime_ns, jobs)
    counts = answer(task, loaded, file[0], Path(file[1]), options, Seconds())
    return {name: number for name, number in counts.items() if isinstance(number, int)}


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
