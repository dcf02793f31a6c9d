"""Data to learn from: readers for common formats, and generators that need no files."""

from partwise.datasets.attributes import chunking_attributes
from partwise.datasets.corpora import data_folder, load_conll2000, load_covtype, load_news20, load_ocr, load_usps
from partwise.datasets.planted import Planted, plant_errors
from partwise.datasets.sentences import make_sentences, write_sentences
from partwise.datasets.synthetic import digit_grammar, make_digit_words, make_tagged_sequences
from partwise.datasets.treebanks import Treebank, read_treebank

__all__ = [
    "Planted",
    "Treebank",
    "chunking_attributes",
    "data_folder",
    "digit_grammar",
    "load_conll2000",
    "load_covtype",
    "load_news20",
    "load_ocr",
    "load_usps",
    "make_digit_words",
    "make_sentences",
    "make_tagged_sequences",
    "plant_errors",
    "read_treebank",
    "write_sentences",
]
