"""From tokens to integer features: `TemplateEncoder` beside building attributes as strings and numbering them in a dict.

Both sides number the same 335,674 attributes of CoNLL-2000's training part. The strings are made by the fast extraction that the
peers' programs use (`benchmarks.peers.attributes`), and by the plain loop over tokens and templates that most programs have.
"""

from __future__ import annotations

import gc
from array import array

from benchmarks.datasets import CONLL2000
from benchmarks.peers import attributes
from benchmarks.race import Options
from benchmarks.report import Report, Row
from benchmarks.timing import side_by_side
from partwise.datasets import chunking_attributes
from partwise.text.columns import read_columns
from partwise.text.template_encoder import TemplateEncoder


def number_strings(items, vocabulary: dict[str, int]) -> tuple[array, array]:
    """Attributes of sentences as numbers, end to end, and where each token begins; new ones enter the vocabulary."""
    index, ptr = array("i"), array("q", [0])
    number = vocabulary.setdefault
    for sentence in items:
        for item in sentence:
            index.extend([number(attribute, len(vocabulary)) for attribute in item])
            ptr.append(len(index))
    return ptr, index


def run(options: Options) -> Report:
    """Encoding alone, and together with reading the file."""
    path = CONLL2000.load(options.folder).train
    columns = read_columns(path)
    sentences = list(attributes.read_sentences(str(path)))
    tokens = columns.sentences()

    def ours():
        return TemplateEncoder("chunking").fit_transform(columns)

    def ours_from_file():
        return TemplateEncoder("chunking").fit_transform(read_columns(path))

    def ours_from_lists():
        return TemplateEncoder("chunking").fit_transform(tokens)

    def strings():
        return number_strings(map(attributes.chunking, sentences), {})

    def strings_from_file():
        return number_strings(map(attributes.chunking, attributes.read_sentences(str(path))), {})

    def plain_loop():
        return number_strings(map(chunking_attributes, tokens), {})

    rows = ours()  # compiles
    ptr, index = strings()
    if rows.ptr[-1] != ptr[-1] or rows.n_features != 1 + max(index):
        raise RuntimeError("The two sides do not have the same features.")
    contenders = (ours, strings, plain_loop, ours_from_lists, ours_from_file, strings_from_file)
    gc.disable()
    try:
        one, fast, plain, lists, file, fast_file = side_by_side(options.repeats, *contenders)
    finally:
        gc.enable()
    note = f"{len(ptr) - 1:,} tokens, {rows.n_features:,} features, {len(index):,} occurrences"
    found = [
        Row("conll2000", "encode, file already read", "s", one, plain, "strings by a plain loop, dict", note),
        Row(
            "conll2000",
            "encode, file already read",
            "s",
            one,
            fast,
            "strings column-wise, dict",
            "the fast extraction of the peers",
        ),
        Row("conll2000", "encode lists of Python tokens", "s", lists, fast, "strings column-wise, dict"),
        Row("conll2000", "read the file and encode", "s", file, fast_file, "strings column-wise, dict"),
    ]
    return Report("encoding", found)
