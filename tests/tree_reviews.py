"""Pages of suspects of trees made up for tests, without a model."""

import numpy as np

from partwise.cli.review_page import made_page
from partwise.files.text_edits import EditableText
from partwise.passes import Evidence
from partwise.solvers.noise import Judgement
from partwise.tasks.constituency.files import Constituent, read_brackets
from partwise.tasks.constituency.review import JudgedTreeFile
from partwise.tasks.constituency.suspects import JudgedBrackets
from partwise.tasks.dependency.data import read_sentences
from partwise.tasks.dependency.files import read_treebank
from partwise.tasks.dependency.review import JudgedTreebank
from partwise.tasks.dependency.suspects import judged_trees

NOISE = None  # pages do not say what it is


def doubted_treebank(data: bytes, doubts):
    """A treebank with a judgement: other (head, relation) for some words, numbered over all sentences."""
    treebank = read_treebank(data)
    given = read_sentences(treebank, None, None)
    heads, relations = treebank.heads.copy(), list(given.relations)
    disputed = np.zeros(len(heads), bool)
    for word, (head, relation) in doubts.items():
        heads[word], relations[word], disputed[word] = head, relation, True
    evidence = Evidence(treebank.words.starts, np.ones(len(heads)), heads.astype(np.int32), disputed)
    odds = np.where(disputed, 2.0 - 1e-3 * np.arange(len(heads)), -5.0)
    examples = np.maximum.reduceat(odds, treebank.words.starts[:-1])
    judged = judged_trees(Judgement(evidence, examples, odds, NOISE), given, heads, relations)
    return JudgedTreebank(None, treebank, judged)


def treebank_review(file, source, words=False):
    """The review of all that is in doubt."""
    ranked = file.judged.ranked_parts() if words else file.judged.ranked()
    return file.review(source, file.doubted(ranked, words), not words)


def write_treebank_page(folder, data: bytes, doubts, words=False):
    """A file and its page; where they are."""
    judged = doubted_treebank(data, doubts)
    return write(folder, "corpus.conllu", data, "parse", lambda source: treebank_review(judged, source, words))


def write_brackets_page(folder, data: bytes, believed, **reading):
    """A file and its page: all its trees, with others that are believed."""
    reading = {"encoding": "utf-8", "traces": False, "functions": False, **reading}
    brackets = read_brackets(data, **reading)
    trees = [Constituent.read(text) for text in believed]
    n = len(trees)
    evidence = Evidence(np.zeros(n + 1, np.int64), np.zeros(0), np.zeros(0, np.int32), np.zeros(0, bool))
    found = Judgement(evidence, np.full(n, 2.0), np.zeros(0), NOISE)
    judged = JudgedBrackets(found, lambda i: (brackets.trees[i], trees[i]), None, [], trees)
    file = JudgedTreeFile(None, brackets, judged, reading)
    doubted = file.doubted(range(n), False)
    return write(folder, "corpus.mrg", data, "constituency", lambda source: file.review(source, doubted, True))


def write(folder, name, data, task, review):
    file, page = folder / name, folder / "page.html"
    file.write_bytes(data)
    source = EditableText.read(str(file))
    page.write_bytes(made_page(review(source).packed(task, source, "made up"), source))
    return file, page
