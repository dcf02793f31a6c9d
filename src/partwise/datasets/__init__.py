"""Data to learn from: readers for common formats, and generators that need no files."""

from partwise.datasets.chunking_attributes import chunking_attributes
from partwise.datasets.drawn_trees import make_brackets
from partwise.datasets.loaders import load_conll2000, load_covtype, load_news20, load_ocr, load_usps
from partwise.datasets.pictures import make_pictures
from partwise.datasets.planted import Planted, plant_errors
from partwise.datasets.planted_parts import plant_shifts, plant_shuffles, plant_structures
from partwise.datasets.planted_trees import plant_head_errors
from partwise.datasets.sentences import make_sentences, write_sentences
from partwise.datasets.synthetic import digit_grammar, make_digit_words, make_tagged_sequences
from partwise.files.corpora import data_folder
from partwise.tasks.alignment.files import AlignedPairs, read_alignments
from partwise.tasks.constituency.files import Brackets, Constituent, read_brackets
from partwise.tasks.dependency.files import Treebank, read_treebank
from partwise.tasks.folding.files import RnaSet, read_dot_bracket, read_rna, write_dot_bracket
from partwise.tasks.graphs.factor_files import read_factor_graphs, write_uai
from partwise.tasks.graphs.files import Graph, GraphSet, read_graphs, write_graphs
from partwise.tasks.ranking.files import RankingSet, load_ohsumed, read_letor
from partwise.tasks.segments.data import SegmentedText
from partwise.tasks.segments.files import read_dictionary, read_segments

__all__ = [
    "AlignedPairs",
    "Brackets",
    "Constituent",
    "Graph",
    "GraphSet",
    "Planted",
    "RankingSet",
    "RnaSet",
    "SegmentedText",
    "Treebank",
    "chunking_attributes",
    "data_folder",
    "digit_grammar",
    "load_conll2000",
    "load_covtype",
    "load_news20",
    "load_ocr",
    "load_ohsumed",
    "load_usps",
    "make_brackets",
    "make_digit_words",
    "make_pictures",
    "make_sentences",
    "make_tagged_sequences",
    "plant_errors",
    "plant_head_errors",
    "plant_shifts",
    "plant_shuffles",
    "plant_structures",
    "read_alignments",
    "read_brackets",
    "read_dictionary",
    "read_dot_bracket",
    "read_factor_graphs",
    "read_graphs",
    "read_letor",
    "read_rna",
    "read_segments",
    "read_treebank",
    "write_dot_bracket",
    "write_graphs",
    "write_uai",
    "write_sentences",
]
