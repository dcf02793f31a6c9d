"""Column files of any size, packed part by part: one pass learns labels and vocabulary, a second one packs.

Text is read and cut into parts of whole sentences by one process; others, if there are any, number the cells of a part and make
its features. What they find is put together in the order of the text: features have the numbers that one process alone would give
them, so the corpus is the same to the byte whatever the number of processes and the size of the parts.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.cluster_map import CLIENT, mapped
from partwise.features.given_labels import GivenLabels
from partwise.losses.records import get_loss
from partwise.tasks.common.packing import Packing, names_of
from partwise.tasks.tagging.files import LabelledColumns, Source
from partwise.text.columns import DOCUMENT_MARKS, Columns, Reader, text_parts
from partwise.text.template_encoder import Merging

CHUNK = 1 << 24  # bytes of text in a part
AHEAD = 2  # parts that wait for each process: memory is what they take


class Text(NamedTuple):
    """A part of a file: whole sentences."""

    data: bytes
    name: str
    line: int  #: the number of its first line


class Learnt(NamedTuple):
    """What a part knows of the vocabulary."""

    vocabulary: tuple[list[str], np.ndarray, np.ndarray] | None  #: None: features are hashed
    labels: list[Any]
    n_sentences: int
    n_tokens: int


class Worker:
    """What processes do with a part of the text. Pickled once for each of them."""

    def __init__(self, tagger: Any, source: Source, n_columns: int, column: int, encoder: Any = None):
        self.tagger, self.source, self.n_columns, self.column, self.encoder = tagger, source, n_columns, column, encoder

    @staticmethod
    def do(text: Text, verb: str, worker: Worker) -> Any:
        """What a worker makes of a part."""
        return getattr(worker, verb)(text)

    def read(self, text: Text) -> Columns | None:
        """The cells of a part; None if there are no tokens in it."""
        columns = cells_of(text, self.source)
        if columns is None:
            return None
        if columns.n_columns != self.n_columns:
            raise ValueError(
                f"{columns.place(0)}: expected {self.n_columns} columns as in the beginning, got {columns.n_columns}."
            )
        return columns

    def learn(self, text: Text) -> Learnt | None:
        """Labels and features of a part."""
        columns = self.read(text)
        if columns is None:
            return None
        labels = self.source.labels(columns, self.column)
        if len(labels.distinct) > self.source.max_labels:
            self.source.labelled(columns)  # says what is wrong with them
        vocabulary = self.encoder.vocabulary_of(columns) if self.encoder.hash_bits is None else None
        return Learnt(vocabulary, labels.distinct, columns.n_sentences, columns.n_tokens)

    def pack(self, text: Text) -> Any:
        """The packed problem of a part."""
        columns = self.read(text)
        return None if columns is None else self.tagger._pack_columns(columns, self.source.labels(columns, self.column))


def packing(files: Sequence[str], options: Any, make: Callable[..., Any], jobs: int, say: Callable[[str], Any]) -> Packing | None:
    """How to pack column files part by part; None where that takes all labels at once."""
    source = Source.of(options)
    at_once = (source.scheme, source.unknown_label, source.either, options.class_weight)
    if any(value is not None for value in at_once) or source.encoding.lower() != "utf-8":
        return None

    def first() -> LabelledColumns:
        for text in texts(files):
            if (columns := cells_of(text, source)) is not None:
                return source.labelled(columns)
        raise ValueError(f"{names_of(files)}: there are no tokens.")

    def learn() -> Any:
        from partwise.tasks.tagging.files import with_more_templates

        tagger, beginning = make(), first()
        if options.add_template:
            tagger.templates = with_more_templates(options.templates, options.add_template, beginning)
        if options.constraints or options.forbid or options.force:
            tagger.constraints = source.constraints(options.constraints, options.forbid, options.force, beginning)
        encoder = tagger._new_encoder(tagger._tokens(beginning.columns, None, None), beginning.labels)
        worker = Worker(None, source, beginning.columns.n_columns, beginning.column, encoder)
        labels: dict[Any, None] = {}
        merging, n_tokens = Merging(encoder), 0
        for part in in_processes(worker, "learn", texts(files), jobs):
            labels.update(dict.fromkeys(part.labels))
            if part.vocabulary is not None:
                merging.add(*part.vocabulary)
            n_tokens += part.n_tokens
            say(f"read {n_tokens:,} tokens, {encoder.n_features:,} features")
        merging.finish()
        classes = GivenLabels(np.arange(len(labels), dtype=np.int32), list(labels)).learn(lambda _: names_of(files))
        tagger._learned(encoder, classes, beginning.column)
        tagger.templates = None  # the encoder knows; a path would mean nothing on another machine
        nothing = tagger._pack_columns(beginning.columns.take([]), None)
        tagger._keep_nothing(kernels.n_weights(nothing), get_loss(tagger.loss))
        return tagger

    def parts(tagger: Any, done: int) -> Iterator[Any]:
        n_columns = first().columns.n_columns
        worker = Worker(tagger, source, n_columns, tagger.label_column_)
        yield from in_processes(worker, "pack", texts(files), jobs, done)

    def about(tagger: Any, problem: Any) -> dict[str, Any]:
        n, tokens = int(kernels.n_examples(problem)), len(problem.gold)
        return {
            "examples": n,
            "tokens": tokens,
            "labels": len(tagger.classes_),
            "features": tagger.n_features_in_,
            "describe": f"{names_of(files)}: {n:,} sentences, {tokens:,} tokens",
        }

    return Packing(learn, parts, about)


def cells_of(text: Text, source: Source) -> Columns | None:
    """The cells of a part, numbered; None if there are no tokens in it."""
    return Reader(source.separator, DOCUMENT_MARKS, source.comment, None).code(text.data, text.name, text.line)


def texts(files: Sequence[str]) -> Iterator[Text]:
    """All files, part by part."""
    for file in files:
        for data, name, line in text_parts(file, CHUNK):
            yield Text(data, name, line)


def in_processes(worker: Worker, verb: str, parts: Iterator[Text], jobs: int, done: int = 0) -> Iterator[Any]:
    """What the workers make of the parts, in their order; parts without tokens make nothing, and the first `done` are skipped."""
    if jobs <= 1 or CLIENT.get() is not None:
        made = mapped(Worker.do, parts, verb, worker, ahead=AHEAD)
        number = count()
        yield from (one for one in made if one is not None and next(number) >= done)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    waiting: deque[Any] = deque()
    number = count()
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin, (worker,)) as pool:
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: [future.cancel() for future in waiting])
            for part in parts:
                waiting.append(pool.submit(_do, verb, part))
                if len(waiting) > AHEAD * jobs:
                    one = waiting.popleft().result()
                    if one is not None and next(number) >= done:
                        yield one
            while waiting:
                one = waiting.popleft().result()
                if one is not None and next(number) >= done:
                    yield one


_OWN: list[Worker] = []  # of a process


def _begin(worker: Worker) -> None:
    _OWN[:] = [worker]


def _do(verb: str, part: Text) -> Any:
    return Worker.do(part, verb, _OWN[0])
