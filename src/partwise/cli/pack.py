"""``partwise pack TASK``: training files of any size, packed on disk, whatever the task is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from partwise.cli.clusters import working_on
from partwise.cli.common import in_words, print_json, show
from partwise.cli.options import CLUSTER, JSON, QUIET, Parameter, Verb, as_parameters, filled
from partwise.cli.progress import spinner, warnings_as_notes
from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import LEARNING, OUTPUT, Refusal
from partwise.tasks.common.registry import BY_VERB, TASKS, RegisteredTask

HELP = """Pack files to train on: partwise train {verb} OUTPUT then maps them into memory, and takes every solver at any size.

    partwise pack {verb} part-*.gz -o corpus.packed --jobs 4

What decides the features is decided here. If it is killed, the same command goes on.
"""
NOT_HERE = ("stream", "chunk_megabytes", "validation_metric")  #: options of ``train`` that are about training


def command() -> Any:
    """``partwise pack``, a command for each task."""
    import typer
    import typer.main

    from partwise.cli.lazy_group import lazy_group
    from partwise.cli.typer_commands import as_command

    group = lazy_group(
        {task.verb: f"For partwise train {task.verb}." for task in TASKS}, lambda name: as_command(verb(BY_VERB[name]))
    )
    app = typer.Typer(cls=group, help="Pack files to train on.", no_args_is_help=True, add_completion=False)
    app.callback()(lambda: None)
    return typer.main.get_command(app)


def verb(task: RegisteredTask) -> Verb:
    """What packs for it."""
    own = task.command

    @in_words
    def run(**given: Any) -> None:
        pack_them(task, given, filled(own.options, given))

    parameters = [
        Parameter("files", list[str], f"{own.file.removesuffix('.')}; several of them, where they can be read as one."),
        Parameter("output", Path, "The folder to write.", ("--output", "-o"), panel=OUTPUT),
        Parameter("shard_megabytes", float, "About how large a shard is.", ("--shard-megabytes",), 64.0, OUTPUT, {"min": 1e-6}),
        Parameter("dtype", str | None, "Of features that are numbers: float64 or float32.", ("--dtype",), None, LEARNING),
        *(one for one in as_parameters(own.options, task.core) if one.name not in NOT_HERE),
        Parameter("jobs", int, "Processes that read and pack; the result is the same.", ("--jobs", "-j"), 1, None, {"min": 1}),
        CLUSTER._replace(text="Read here, and do the rest on a dask cluster: tcp://scheduler:8786, or local[4]: four processes."),
        JSON,
        QUIET,
    ]
    return Verb(task.verb, HELP.format(verb=task.verb), parameters, run)


def pack_them(task: RegisteredTask, given: dict[str, Any], options: Any) -> None:
    """Pack, and say what came of it."""
    from partwise.tasks.common.packing import pack_files

    if "-" in given["files"]:
        raise Refusal("Files are read twice, which standard input cannot be: give names of files.")
    seconds, more = Seconds(), {} if given["dtype"] is None else {"dtype": given["dtype"]}
    quiet = given["quiet"] or given["as_json"]
    with (
        working_on(given["cluster"]),
        spinner("packing", quiet) as say,
        warnings_as_notes(lambda text: None if quiet else show(text, sys.stderr)),
    ):
        corpus = pack_files(task, given["files"], given["output"], options, more, given["jobs"], given["shard_megabytes"], say)
    seconds("pack")
    about = {key: value for key, value in corpus.manifest["about"].items() if key != "describe"}
    found = {"task": task.verb, **about, "shards": corpus.n_shards, "bytes": corpus.nbytes, "output": str(given["output"])}
    if not given["quiet"]:
        where = sys.stderr if given["as_json"] else sys.stdout
        size = f"{corpus.nbytes / 1e6:,.1f} MB in {corpus.in_shards}"
        said = corpus.manifest["about"].get("describe", "")
        show(f"{said}\nwrote {given['output']}: {len(corpus):,} examples, {size}", where)
    if given["as_json"]:
        print_json({**found, "seconds": seconds.total()})
