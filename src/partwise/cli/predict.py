"""``partwise predict``: the text as it was, with one more column.

What is appended, and how, is said in `partwise.tasks.tagging.files`.
Text is read, labelled and written part by part, so memory does not grow with the file.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partwise.cli import options, tasks
from partwise.cli.common import Refusal, check_writable, in_words, load_tagger, print_json, read_file, separator_of
from partwise.cli.options import FILES, LABELS, OUTPUT, option
from partwise.files.whole_file import whole_file

if TYPE_CHECKING:
    from partwise.text.columns import Columns


@in_words
def predict(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    file: Annotated[
        str, typer.Argument(help="Column file with the columns that the model was trained on, or treebank; gz; '-' is stdin.")
    ],
    output: Annotated[
        Path | None, option(OUTPUT, "Where to write, compressed if it ends in .gz. (default: stdout)", "--output", "-o")
    ] = None,
    kbest: Annotated[int | None, option(OUTPUT, "The k best labellings, as crf_test -n prints them.", min=1)] = None,
    marginals: Annotated[bool, option(OUTPUT, "Append label/probability too.", "--marginals")] = False,
    all_marginals: Annotated[bool, option(OUTPUT, "Append label/probability of every label too.", "--all-marginals")] = False,
    form: Annotated[
        str | None,
        option(
            OUTPUT,
            "columns: the text and more; jsonl: a JSON object a sentence; of parses tree and svg, which draw them, "
            "of foldings svg and png. "
            "(default: the text and more)",
            "--format",
        ),
    ] = None,
    calibrate: Annotated[
        str | None,
        option(OUTPUT, "Held-out file with labels to fit probabilities to, for models trained with a margin loss."),
    ] = None,
    known_column: Annotated[int | None, option(LABELS, "Column of labels that are known already: they are kept.")] = None,
    known_unknown: Annotated[str | None, option(LABELS, "The cell in --known-column that stands for an unknown label.")] = None,
    scheme: Annotated[
        str | None, option(LABELS, "Write chunk labels in this scheme. (default: that of the training data)")
    ] = None,
    separator: options.Separator = None,
    encoding: options.Encoding = "utf-8",
    comment: Annotated[str | None, option(FILES, "Lines that begin with it are no tokens; they are written as they are.")] = None,
    jobs: options.Jobs = 1,
    as_json: Annotated[bool, option(None, "Print counts and times as JSON on stdout; needs --output.", "--json")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Label sentences, or parse them: the text as it was, with the labels as one more column, or the trees in their place.

    partwise predict model test.txt -o labelled.txt
    """
    begun = time.perf_counter()
    to_stdout = output is None or str(output) == "-"
    if as_json and to_stdout:
        raise Refusal("--json prints on stdout, and so do the labels: say with --output where to write them.")
    if kbest is not None and (marginals or all_marginals):
        raise Refusal("--kbest cannot go with --marginals: probabilities of labels are not those of labellings.")
    if output is not None and not to_stdout:
        check_writable(output)
        for other in (file, model):
            if output.exists() and os.path.exists(other) and os.path.samefile(output, other):
                raise Refusal(f"{output} is what is to be read; choose another name for the output.")

    if task := tasks.kind_for(model):
        tasks.refuse(task, model, kbest=kbest, marginals=marginals or all_marginals, calibrate=calibrate, scheme=scheme)
        tasks.predict_file(task, model, file, None if to_stdout else output, form, encoding, jobs, as_json, quiet)
        return
    if form not in (None, "columns", "jsonl"):
        raise Refusal(f"--format {form}: a model of sequences writes columns or jsonl.")

    from partwise.tasks.tagging import files as labelled_text
    from partwise.tasks.tagging.answers import Answers

    tagger = load_tagger(model)
    tagger.n_jobs = jobs
    answers = Answers(tagger, scheme)
    if calibrate is not None:
        held_out = read_file(calibrate, separator, encoding, comment)
        column = -1 if tagger.label_column_ is None else tagger.label_column_
        tagger.calibrate(held_out, answers.truth(held_out, column))
    elif marginals or all_marginals:
        _check_probabilities(tagger)
    kind: labelled_text.Kind
    if kbest is not None:
        kind = labelled_text.Candidates(answers, kbest)
    elif marginals or all_marginals:
        kind = labelled_text.Probabilities(answers, all_marginals)
    else:
        kind = labelled_text.Labels(answers)
    seconds = {"load": time.perf_counter() - begun, "read": 0.0, "label": 0.0, "write": 0.0}
    clock = Clock(seconds)
    sentences = tokens = 0
    between = separator_of(separator)
    with writing(output) as write:
        whole = form == "jsonl" or known_column is not None
        wanted = None if whole else slice(max(tagger.encoder_.n_columns, 1))  # cells that nobody looks at are not read
        for part in parts(file, separator, encoding, comment, kind.part_bytes, wanted):
            clock("read")
            text = part.data
            if part.n_tokens:
                known = None if known_column is None else answers.known(part, known_column, known_unknown)
                between = between or labelled_text.usual_separator(part)
                if form == "jsonl":
                    text = labelled_text.as_lines(kind.objects(part, known))
                else:
                    text = kind.text(part, known, between)
            elif form == "jsonl":
                text = b""
            clock("label")
            write(text if _is_utf8(encoding) else _encoded(text, encoding, file))
            sentences, tokens = sentences + part.n_sentences, tokens + part.n_tokens
            clock("write")
    clock("write")
    seconds["total"] = time.perf_counter() - begun
    speed = tokens / max(seconds["total"] - seconds["load"], 1e-9)
    if as_json:
        print_json(
            {
                "file": file,
                "output": str(output),
                "sequences": sentences,
                "tokens": tokens,
                "seconds": seconds,
                "tokens_per_second": speed,  # text to text, once the model is loaded
            }
        )
    elif not to_stdout and not quiet:
        print(f"wrote {output}: {sentences:,} sentences, {tokens:,} tokens, {seconds['total']:.2f} s", file=sys.stderr)


def _check_probabilities(tagger: Any) -> None:
    if tagger.temperature_ is None:
        raise Refusal(
            f"The model was trained with the loss {tagger.loss!r}, which fits scores, not probabilities. Train with --loss crf "
            "or softmax_margin, or give --calibrate a file with labels that was not used for training."
        )


# ---------------------------------------------------------------------------------------------------------------------
# Reading and writing
# ---------------------------------------------------------------------------------------------------------------------


class Clock:
    """Adds the time since it was last asked to an entry."""

    def __init__(self, seconds: dict[str, float]):
        self.seconds, self.last = seconds, time.perf_counter()

    def __call__(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] += now - self.last
        self.last = now


def parts(
    file: str, separator: str | None, encoding: str, comment: str | None, size: int, usecols: slice | None
) -> Iterator[Columns]:
    """The text in parts of whole sentences; as a whole if it has to be translated to UTF-8 first."""
    from partwise.text.columns import stream_columns

    if _is_utf8(encoding):
        yield from stream_columns(
            file, separator_of(separator), chunk_bytes=size, comment=comment, usecols=usecols, all_text=True
        )
    else:
        yield read_file(file, separator, encoding, comment)


def _is_utf8(encoding: str) -> bool:
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")


def _encoded(text: bytes, encoding: str, file: str) -> bytes:
    try:
        return text.decode().encode(encoding)
    except UnicodeEncodeError as error:
        raise Refusal(f"{file}: a label cannot be written in {encoding}: {error.object[error.start : error.end]!r}.") from None


@contextlib.contextmanager
def writing(path: Path | None) -> Iterator[Callable[[bytes], Any]]:
    """A function that writes bytes: to stdout, or to a file that is there as a whole in the end, or not at all."""
    if path is None or str(path) == "-":
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(whole_file(path))
        if path.suffix == ".gz":
            import gzip

            file = stack.enter_context(gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0))
        yield file.write
