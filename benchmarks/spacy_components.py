"""Components for spaCy beside spaCy's own, on the same sentences: ``python -m benchmarks.spacy_components``.

====================  ==============================================  ==========================================
`ner`                 CoNLL-2002, Spanish: ``esp.train``               ``esp.testa``; F1 of entities
`tagger`              UD English EWT: training file, XPOS              development file; accuracy
`parser`              UD English EWT: training file                    development file; UAS, LAS, no punctuation
====================  ==============================================  ==========================================

As many sentences to learn from as are asked for, evenly spaced in the file, since EWT goes from one kind of text to the next.
CPU seconds of training and of annotating, scores as spaCy counts them. spaCy's own components are trained as its configuration
for CPUs has it: hashed embeddings over a window, batches that grow from 100 to 1,000 words, dropout 0.1, and as many passes as
are asked for; judged after each pass, the best one is reported, which flatters it. Ours have their defaults. Blank pipelines,
no vectors, one thread. Our parser stands behind our tagger, learns from true tags and parses with predicted ones, and annotating
counts both; spaCy's looks at words alone, as it does by default. A document is one sentence: ours takes it for one tree, spaCy's
parser has to learn that.
"""

from __future__ import annotations

import argparse
import gzip
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from partwise.bridges import spacy_components  # noqa: F401 - makes the factories known
from partwise.files.corpora import data_folder
from partwise.text.chunk_schemes import convert


def blocks_of(corpus: str, pattern: str, n: int | None = None) -> list[list[list[str]]]:
    """Sentences of a file as rows of cells, `n` of them, evenly spaced."""
    with gzip.open(next(data_folder(corpus).glob(pattern))) as stream:
        blocks = stream.read().decode("utf-8", "replace").split("\n\n")
    split = "\t" if corpus.startswith("ud_") else None
    found = []
    for block in blocks:
        rows = [line.split(split) for line in block.strip().splitlines() if not (split and line.startswith("#"))]
        rows = [row for row in rows if not split or row[0].isdigit()]
        if rows:
            found.append(rows)
    if n is None or n >= len(found):
        return found
    return [found[k * len(found) // n] for k in range(n)]


def with_entities(nlp: Any, rows: list[list[str]]) -> Any:
    """A document with its entities."""
    from spacy.tokens import Doc, Span

    labels = convert([[row[-1] for row in rows]], "bilou")[0]
    doc, spans, begin = Doc(nlp.vocab, [row[0] for row in rows]), [], 0
    for k, label in enumerate(labels):
        if label[0] in "BU":
            begin = k
        if label[0] in "LU":
            spans.append(Span(doc, begin, k + 1, label[2:]))
    doc.set_ents(spans)
    return doc


def with_tree(nlp: Any, rows: list[list[str]]) -> Any:
    """A document with tags and its tree."""
    from spacy.tokens import Doc

    heads = [k if row[6] == "0" else int(row[6]) - 1 for k, row in enumerate(rows)]
    return Doc(nlp.vocab, [row[1] for row in rows], tags=[row[4] for row in rows], heads=heads, deps=[row[7] for row in rows])


def examples(nlp: Any, make: Callable[..., Any], sentences: list[Any]) -> list[Any]:
    """spaCy's examples: what is to be annotated, and the truth."""
    from spacy.tokens import Doc
    from spacy.training import Example

    found = []
    for rows in sentences:
        doc = make(nlp, rows)
        found.append(Example(Doc(nlp.vocab, [token.text for token in doc]), doc))
    return found


def fresh(some: list[Any]) -> list[Any]:
    """The same examples, nothing predicted yet."""
    from spacy.tokens import Doc
    from spacy.training import Example

    return [Example(Doc(one.reference.vocab, [t.text for t in one.reference]), one.reference) for one in some]


def judged(nlp: Any, some: list[Any], scores: Callable[[Any], list[float]]) -> tuple[list[float], float]:
    """Scores, and CPU seconds of annotating."""
    from spacy.training import Example

    docs = [one.predicted for one in fresh(some)]
    clock = time.process_time()
    docs = list(nlp.pipe(docs))
    seconds = time.process_time() - clock
    return scores([Example(doc, one.reference) for doc, one in zip(docs, some, strict=True)]), seconds


def score_entities(pairs: Any) -> list[float]:
    """F1."""
    from spacy.scorer import get_ner_prf

    return [get_ner_prf(pairs)["ents_f"]]


def score_tags(pairs: Any) -> list[float]:
    """Accuracy."""
    from spacy.scorer import Scorer

    return [Scorer.score_token_attr(pairs, "tag")["tag_acc"]]


def score_trees(pairs: Any) -> list[float]:
    """LAS, UAS."""
    from spacy.scorer import Scorer

    found = Scorer.score_deps(pairs, "dep", ignore_labels=("p", "punct"))
    return [found["dep_las"], found["dep_uas"]]


@dataclass(frozen=True)
class Contest:
    """A component of spaCy's, and those of ours that do the same."""

    language: str
    corpus: str
    files: tuple[str, str]
    make: Callable[..., Any]
    scores: Callable[[Any], list[float]]
    measures: str
    before: str | None  #: the component of ours that stands before ours in the pipeline
    settings: tuple[dict[str, Any], ...]


EWT = "en", "ud_english_ewt", ("*train*", "*dev*"), with_tree
CONTESTS = {
    "ner": Contest(
        "es", "conll2002", ("esp.train*", "esp.testa*"), with_entities, score_entities, "F1", None, ({}, {"loss": "crf"})
    ),
    "tagger": Contest(*EWT, score_tags, "accuracy", None, ({}, {"loss": "crf"})),
    "parser": Contest(*EWT, score_trees, "LAS, UAS", "partwise_tagger", ({},)),
}


def told(name: str, seconds: float, annotating: float, values: list[float], measures: str) -> None:
    """A line."""
    said = ", ".join(f"{100 * value:.2f}" for value in values)
    print(f"{name}: trained in {seconds:.1f} s, annotated in {annotating:.1f} s, {measures} {said}", flush=True)


def ours(kind: str, contest: Contest, train: list[Any], test: list[Any]) -> None:
    """All settings of ours; compiled code is loaded before the clock starts, by training on a few sentences."""
    import spacy

    for settings in contest.settings:
        for some in (train[:40], train):
            nlp = spacy.blank(contest.language)
            learning, judging = (
                examples(nlp, contest.make, some),
                examples(nlp, contest.make, test if some is train else test[:40]),
            )
            if contest.before is not None:
                nlp.add_pipe(contest.before)
                nlp.initialize(lambda learning=learning: learning)
                before = nlp.get_pipe(contest.before)
                nlp = spacy.blank(contest.language, vocab=nlp.vocab)
                nlp.add_pipe(contest.before)
                nlp.get_pipe(contest.before).model_ = before.model_
            pipe = nlp.add_pipe(f"partwise_{kind}", config=settings)
            clock = time.process_time()
            pipe.initialize(lambda learning=learning: learning, nlp=nlp)
            seconds = time.process_time() - clock
            if some is not train:
                list(nlp.pipe([one.predicted for one in fresh(judging)]))
        values, annotating = judged(nlp, judging, contest.scores)
        told(f"partwise_{kind} {settings or ''}".strip(), seconds, annotating, values, contest.measures)


def theirs(kind: str, contest: Contest, train: list[Any], test: list[Any], passes: int) -> None:
    """spaCy's own, judged after each pass."""
    import spacy
    from spacy.training.batchers import minibatch_by_words
    from spacy.util import compounding

    nlp = spacy.blank(contest.language)
    learning, judging = examples(nlp, contest.make, train), examples(nlp, contest.make, test)
    nlp.add_pipe(kind)
    random.seed(0)
    clock = time.process_time()
    optimizer = nlp.initialize(lambda: learning)
    spent, best, sizes = time.process_time() - clock, ([0.0], 0.0, 0.0, 0), compounding(100.0, 1000.0, 1.001)
    for number in range(1, passes + 1):
        clock = time.process_time()
        random.shuffle(learning)
        for batch in minibatch_by_words(fresh(learning), sizes):
            nlp.update(batch, sgd=optimizer, drop=0.1)
        spent += time.process_time() - clock
        values, annotating = judged(nlp, judging, contest.scores)
        best = max(best, (values, spent, annotating, number))
        told(f"{kind}, pass {number}", spent, annotating, values, contest.measures)
    told(f"{kind}, best after pass {best[3]}", best[1], best[2], best[0], contest.measures)


def main() -> None:
    """See the module."""
    import spacy

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("components", nargs="*", default=list(CONTESTS), help=", ".join(CONTESTS))
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--passes", type=int, default=10)
    given = parser.parse_args()
    print(f"spaCy {spacy.__version__}, {given.sentences} sentences to learn from")
    for kind in given.components:
        contest = CONTESTS[kind]
        train = blocks_of(contest.corpus, contest.files[0], given.sentences)
        test = blocks_of(contest.corpus, contest.files[1])
        ours(kind, contest, train, test)
        theirs(kind, contest, train, test, given.passes)


if __name__ == "__main__":
    main()
