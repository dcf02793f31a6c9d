"""Parquet files on the command line: in, as the text that the task's reader knows; out, as the table with answers in it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from partwise.files.parquet import ENDINGS, as_parquet, is_parquet, read_parquet, with_columns
from partwise.files.text_source import NamedText
from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.registry import TASKS, RegisteredTask
from partwise.tasks.common.tables import Grid, in_rows, titled

READING = ("separator", "encoding", "comment", "group_column")  #: options that say how to read a file
MORE_FILES = ("calibrate",)  #: options that name files of the same kind


class OpenedTable(NamedTuple):
    """A parquet file."""

    table: Any  #: of Arrow
    text: Any  #: what the task's reader is given
    order: list[int]  #: the row of the table of each row of the text


def opened(task: RegisteredTask, file: Any, options: Any) -> OpenedTable:
    """Read a parquet file; `options` are changed to fit the text."""
    if task.table is None:
        able = ", ".join(other.verb for other in TASKS if other.table is not None)
        raise Refusal(f"{file} is a parquet file, and a table is natural for {able} only; this {task.does}.")
    if getattr(options, "stream", False):
        raise Refusal("--stream reads text part by part, and no parquet file.")
    table = read_parquet(file)
    if not task.table.is_text:
        return OpenedTable(table, file, list(range(table.num_rows)))
    grid = Grid(list(table.column_names), [column.to_pylist() for column in table.columns], os.fspath(file)).checked()
    text, order = task.table.text(grid, getattr(options, "group_column", None), getattr(options, "unknown_label", None))
    options.encoding = "utf-8"
    if hasattr(options, "separator"):
        options.separator = "\t"
    return OpenedTable(table, NamedText(text.encode(), f"{file} as text"), order)


def text_of(task: RegisteredTask, file: Any, options: Any) -> Any:
    """A file as the task's reader takes it: as it is, or the text of a parquet file."""
    for name in MORE_FILES:
        if is_parquet(more := getattr(options, name, None)):
            setattr(options, name, opened(task, more, options).text)
    return opened(task, file, options).text if is_parquet(file) else file


def is_table_name(path: Path | None) -> bool:
    """Whether what is to be written is a parquet file, by its name."""
    return path is not None and path.suffix in ENDINGS


def predict_table(
    task: RegisteredTask, model: Any, file: Any, options: Any, write: Callable[[bytes], Any], seconds: Seconds
) -> dict[str, Any]:
    """The table of a parquet file with columns more, the answers; returns how much it was."""
    if not is_parquet(file):
        raise Refusal(f"A parquet file is made of one, with columns more; {file} is none. Give --output another name.")
    for field in dataclasses.fields(options):
        if field.name not in READING and getattr(options, field.name) != field.default:
            name = field.metadata["names"][0] if field.metadata["names"] else f"--{field.name.replace('_', '-')}"
            raise Refusal(f"{name} is about answers as text; these become columns of a parquet file. Give --output another name.")
    found = opened(task, file, options)
    data = task.command.read_for(model, found.text, options)
    seconds("read")
    answers = titled(in_rows(task.table.answers(model, data), found.order, str(file)), "predicted")
    seconds("label")
    write(as_parquet(with_columns(found.table, answers, str(file))))
    seconds("write")
    return task.command.count(data)
