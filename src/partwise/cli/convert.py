"""``partwise convert``: between files of annotation tools and column files, offsets kept."""

from __future__ import annotations

import sys
from pathlib import Path

from partwise.cli.common import in_words, print_json, show
from partwise.cli.options import JSON, QUIET, Parameter, Verb
from partwise.cli.paths import check_paths
from partwise.tasks.common.command_options import OUTPUT

HELP = """Turn files of annotation tools into column files, and back. Character offsets are kept.

    partwise convert marked.jsonl --from prodigy --to columns -o train.txt
    partwise train tag train.txt --templates ner --columns w -o model
    partwise convert labelled.txt --from columns --to doccano -o labelled.jsonl

Formats: prodigy, doccano (JSON lines), labelstudio (JSON), brat (NAME.txt beside NAME.ann, or a folder of them), columns (word,
start, end, ..., label). A span that does not begin and end with tokens is an error that says where; --adjust widens it.
"""


def verb() -> Verb:
    """The verb."""
    return Verb(
        "convert",
        HELP,
        [
            Parameter("file", Path, "What to convert; for brat a .ann file, or a folder of them."),
            Parameter("source", str, "Its format.", ("--from",)),
            Parameter("target", str, "The format to write.", ("--to",), panel=OUTPUT),
            Parameter("output", Path, "Where to write it.", ("--output", "-o"), panel=OUTPUT),
            Parameter("adjust", bool, "Widen spans to whole tokens, where they cut one.", ("--adjust",), False, OUTPUT),
            JSON,
            QUIET,
        ],
        run,
    )


@in_words
def run(file: Path, source: str, target: str, output: Path, adjust: bool, as_json: bool, quiet: bool) -> None:
    """Read, and write."""
    from partwise.bridges.annotation_files import check_format, contents_of, files_of, read_annotations, write_annotations

    check_format(source, "--from")
    check_format(target, "--to")
    read = {f"the file {one}": one for one in files_of(file, source)}
    check_paths(read, {"--output": output})
    documents = read_annotations(file, source)
    check_paths(read, {f"--output, file {one.name}:": one for one in contents_of(documents, output, target, adjust)})
    files = write_annotations(documents, output, target, adjust)
    spans = sum(len(one.spans) for one in documents)
    if not quiet:
        show(
            f"{len(documents):,} texts with {spans:,} spans, written to {files[0] if files else output}",
            sys.stderr if as_json else sys.stdout,
        )
    if as_json:
        print_json({"texts": len(documents), "spans": spans, "files": [str(one) for one in files]})
