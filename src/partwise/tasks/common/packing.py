"""From the files of a task to a packed corpus on disk.

Every task can do it by being registered: its estimator is asked to ``fit``, and the problem that it would hand to a solver goes
to disk instead; the estimator, which has learnt its vocabulary and labels by then, is kept as a model without weights. That
takes as much memory as training would. A task whose files may be larger than memory says how to go through them part by part
(`Command.packing`): one pass learns the vocabulary, a second one packs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.ragged import layout_of
from partwise.files.named_arrays import apart, together
from partwise.files.packed_arrays import PackedError, PackedWriter
from partwise.tasks.common import model_file
from partwise.tasks.common.command_options import Refusal, Training, parameters_of
from partwise.tasks.common.packed_corpus import MODEL, PackedCorpus, below, checksum_of, prefix, shared_checksum
from partwise.tasks.common.registry import BY_VERB, RegisteredTask

SHARD_MEGABYTES = 64.0


class Packing(NamedTuple):
    """How to go through files part by part."""

    learn: Callable[[], Any]  #: the estimator, after a pass that learns everything but weights
    parts: Callable[[Any, int], Iterator[Any]]  #: (estimator, n): packed problems, all but the first n of them
    about: Callable[[Any, Any], dict[str, Any]]  #: (estimator, problem): for machines


def pack(
    task: str,
    files: Any,
    output: Any,
    *,
    jobs: int = 1,
    shard_megabytes: float = SHARD_MEGABYTES,
    say: Callable[[str], Any] = lambda text: None,
    **options: Any,
) -> PackedCorpus:
    r"""Pack training files into a folder that can be trained on at any size: see `PackedCorpus`.

    Parameters
    ----------
    task : str
        As on the command line: "tag", "classify", "parse", ...
    files : path or list of paths
        What ``partwise train`` would read; gzipped or not.
    output : path
        The folder to write, which must not be there. If an earlier call with the same files and options was killed, it is
        gone on with.
    jobs : int
        Processes that read and pack, where the task packs part by part.
    shard_megabytes : float
        About how large a shard is.
    say : function of a str
        Told how it goes.
    **options
        Of ``partwise train TASK`` that say how files are read and what the features are, and parameters of the estimator:
        ``min_count=2``, ``hash_bits=22``, ``label_column=1``.

    Examples
    --------
    >>> import partwise
    >>> from pathlib import Path
    >>> _ = Path("rows.csv").write_text("x,class\n1,a\n2,b\n3,b\n")
    >>> corpus = partwise.pack("classify", "rows.csv", "rows.packed")
    >>> partwise.Classifier(max_epochs=2).fit(corpus).classes_.tolist()
    ['a', 'b']
    """
    if task not in BY_VERB:
        raise ValueError(f"There is no task {task!r}; there are {', '.join(BY_VERB)}.")
    found = BY_VERB[task]
    own = {name: options.pop(name) for name in list(options) if name in found.command.options.__dataclass_fields__}
    unknown = [name for name in options if name not in found.core.parameter_names()]
    if unknown:
        raise TypeError(f"Packing for {task!r} knows no option {unknown[0]!r}.")
    names = [os.fspath(file) for file in ([files] if isinstance(files, str | os.PathLike) else files)]
    return pack_files(found, names, output, found.command.options(**own), options, jobs, shard_megabytes, say)


def pack_files(
    task: RegisteredTask,
    files: Sequence[str],
    output: Any,
    options: Any,
    parameters: Mapping[str, Any],
    jobs: int,
    shard_megabytes: float,
    say: Callable[[str], Any],
) -> PackedCorpus:
    """`pack`, with the options as the command line has them."""
    if not files:
        raise Refusal("There are no files to pack.")
    for file in files:
        if not os.path.isfile(file):
            raise Refusal(f"{file}: there is no such file.")
    given = {**parameters, **parameters_of(options, task.core)}
    task.core(**given).check_parameters()
    seen = [[os.path.abspath(file), os.path.getsize(file), os.stat(file).st_mtime_ns] for file in files]
    origin = {"estimator": task.estimator, "files": seen, "options": repr(options), "parameters": repr(sorted(given.items()))}
    writer = PackedWriter(output, origin)
    try:
        return write(task, writer, files, options, lambda **more: task.core(**{**more, **given}), jobs, shard_megabytes, say)
    finally:
        writer.close()  # what is there already is gone on with


def write(task, writer, files, options, make, jobs, shard_megabytes, say) -> PackedCorpus:
    """Learn, pack, cut into shards, and give the folder its name."""
    place = os.path.join(writer.folder, MODEL)
    packing = task.command.packing(files, options, make, jobs, say)
    if packing is not None:
        if writer.notes and os.path.exists(place):
            model = model_file.load(place, plain=True)
            say(f"going on after {len(writer.notes):,} parts that are packed already")
        else:
            model = packing.learn()
            model_file.save(model, place)
        problem = write_parts(writer, packing.parts(model, len(writer.notes)), say)
        problems, about = {"": problem}, packing.about(model, problem)
    else:
        for name in list(writer.rows):
            os.unlink(writer._place(name))
        writer.rows, writer.kinds, writer.notes = {}, {}, []
        training = task.command.start(task.command.joined(files), None, options, make)
        say(training.describe)
        problems = write_fit(writer, training)
        model_file.save(training.estimator, place)
        about = {**training.about(), "describe": training.describe}
    return finish(task, writer, problems, about, shard_megabytes)


def finish(
    task: RegisteredTask, writer: PackedWriter, problems: dict[str, Any], about: Mapping[str, Any], megabytes: float
) -> Any:
    """Cut what is written into shards, add up checksums, and give the folder its name."""
    whole = problems[""]
    edges = cut(whole, megabytes * 1e6)
    sums = [checksum_of(kernels.take(whole, slice(a, b)), whole) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    writer.finish(
        {
            "task": task.verb,
            "problems": {name: apart(problem)[0] for name, problem in problems.items()},
            "examples": int(edges[-1]),
            "shards": edges,
            "shard_crc32": sums,
            "shared_crc32": shared_checksum(whole),
            "beside_crc32": {name: checksum_of(problem, None) for name, problem in problems.items() if name},
            "about": {key: value for key, value in about.items() if isinstance(value, str | int | float | bool)},
        }
    )
    return PackedCorpus(writer.path, verify=False)


def write_fit(writer: PackedWriter, training: Training) -> dict[str, Any]:
    """The problems that an estimator would solve, on disk and mapped."""
    taken: list[tuple[str, Any, Any]] = []
    training.estimator.packer = taken
    try:
        training.fit(checkpoint=None)
    finally:
        del training.estimator.packer
    names = [name for name, _, _ in taken]
    if len(set(names)) != len(names):
        raise Refusal("This model is trained in stages, each on what the one before it answers: it cannot be packed.")
    arrays: dict[str, np.ndarray] = {}
    about: dict[str, Any] = {}
    for name, problem, weight in taken:
        about[name], own = apart(problem)
        arrays |= {prefix(name) + key: array for key, array in own.items()}
        if weight is not None and not (np.asarray(weight) == 1.0).all():
            arrays[f"{prefix(name)}sample_weight"] = np.asarray(weight, np.float64)
    del taken
    writer.append(arrays)
    mapped = writer.arrays()
    return {name: together(one, below(mapped, prefix(name))) for name, one in about.items()}


def write_parts(writer: PackedWriter, parts: Iterator[Any], say: Callable[[str], Any]) -> Any:
    """Problems laid end to end, on disk, one after the other; returns the whole, mapped."""
    for problem in parts:
        about, arrays = apart(problem)
        layout = layout_of(problem)
        if not writer.notes:
            rows, ends = dict(arrays), {}
        else:
            before = writer.notes[-1]
            if about != before["about"]:
                raise PackedError("Parts of one corpus must be alike, and these are not: they have other types or numbers.")
            ends = before["ends"]
            rows = {name: array[1:] + ends[name] for name, array in arrays.items() if layout[name] == "offsets"}
            rows |= {name: array for name, array in arrays.items() if layout[name] == "each"}
        last = {name: ends.get(name, 0) + int(arrays[name][-1]) for name, how in layout.items() if how == "offsets"}
        examples = int(kernels.n_examples(problem)) + (writer.notes[-1]["examples"] if writer.notes else 0)
        note = {"about": about, "ends": last, "examples": examples}
        writer.append({prefix("") + name: array for name, array in rows.items()}, note)
        say(f"packed {examples:,} examples, {writer.nbytes / 1e9:.2f} GB")
    if not writer.notes:
        raise PackedError("There are no examples to pack.")
    return together(writer.notes[-1]["about"], below(writer.arrays(), prefix("")))


def cut(problem: Any, size: float) -> list[int]:
    """Edges of shards of about `size` bytes, by the lengths of outputs; as many examples as there are, at most."""
    starts = kernels.sizes(problem)[0]
    n = len(starts) - 1
    total = sum(array.nbytes for array in apart(problem)[1].values())
    wanted = int(np.clip(round(total / max(size, 1.0)), 1, max(n, 1)))
    along = starts + np.arange(n + 1)  # outputs may be empty
    inner = np.searchsorted(along, np.linspace(0, along[-1], wanted + 1)[1:-1])
    return [0, *sorted({int(edge) for edge in inner} - {0, n}), n]


def names_of(files: Sequence[str]) -> str:
    """Files in words."""
    return Path(files[0]).name if len(files) == 1 else f"{len(files)} files, {Path(files[0]).name} and others"
