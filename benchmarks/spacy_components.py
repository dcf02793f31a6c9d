"""Components for spaCy beside spaCy's own, on the same sentences: ``python -m benchmarks.spacy_components``.

Named entities of Spanish news (CoNLL-2002): the first sentences of the training file to learn from, ``esp.testa`` to be judged
by. CPU seconds of training and of annotating, F1 as spaCy counts it. spaCy's own `ner` is trained as its documentation does in
Python: hashed embeddings over a window (its default for CPUs), minibatches, dropout 0.2, and as many passes as are asked for;
judged after each pass, the best one is reported, which flatters it. Ours has its defaults. Blank pipelines, no vectors, one
thread.
"""

from __future__ import annotations

import argparse
import gzip
import random
import time
from typing import Any

from partwise.bridges import spacy_components  # noqa: F401 - makes the factories known
from partwise.files.corpora import data_folder
from partwise.text.chunk_schemes import convert


def examples(nlp: Any, name: str, n: int) -> list[Any]:
    """Sentences as spaCy's examples."""
    from spacy.tokens import Doc, Span
    from spacy.training import Example

    file = next(data_folder("conll2002").glob(f"{name}*"))
    with gzip.open(file) as stream:
        blocks = [block for block in stream.read().decode("utf-8", "replace").split("\n\n") if block.strip()]
    found = []
    for block in blocks[:n]:
        rows = [line.split() for line in block.strip().splitlines()]
        words, labels = [row[0] for row in rows], convert([[row[-1] for row in rows]], "bilou")[0]
        doc, spans, begin = Doc(nlp.vocab, words), [], 0
        for k, label in enumerate(labels):
            if label[0] in "BU":
                begin = k
            if label[0] in "LU":
                spans.append(Span(doc, begin, k + 1, label[2:]))
        doc.set_ents(spans)
        found.append(Example(Doc(nlp.vocab, words), doc))
    return found


def fresh(some: list[Any]) -> list[Any]:
    """The same examples, nothing predicted yet."""
    from spacy.tokens import Doc
    from spacy.training import Example

    return [Example(Doc(one.reference.vocab, [t.text for t in one.reference]), one.reference) for one in some]


def judged(nlp: Any, some: list[Any]) -> tuple[float, float]:
    """F1, and CPU seconds of annotating."""
    clock = time.process_time()
    docs = list(nlp.pipe([one.predicted for one in fresh(some)]))
    seconds = time.process_time() - clock
    from spacy.scorer import get_ner_prf
    from spacy.training import Example

    pairs = [Example(doc, one.reference) for doc, one in zip(docs, some, strict=True)]
    return get_ner_prf(pairs)["ents_f"], seconds


def main() -> None:
    """See the module."""
    import spacy
    from spacy.util import minibatch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--passes", type=int, default=10)
    given = parser.parse_args()
    print(f"{given.sentences} sentences of CoNLL-2002, Spanish; spaCy {spacy.__version__}")
    for name, config in (("partwise_ner", {}), ("partwise_ner", {"loss": "crf"})):
        nlp = spacy.blank("es")
        train, test = examples(nlp, "esp.train", given.sentences), examples(nlp, "esp.testa", 100_000)
        nlp.add_pipe(name, config=config)
        clock = time.process_time()
        nlp.initialize(lambda train=train: train)
        seconds = time.process_time() - clock
        f1, annotating = judged(nlp, test)
        print(
            f"{name} {config or ''}: trained in {seconds:.1f} s, annotated in {annotating:.1f} s, F1 {100 * f1:.2f}", flush=True
        )
    nlp = spacy.blank("es")
    train, test = examples(nlp, "esp.train", given.sentences), examples(nlp, "esp.testa", 100_000)
    nlp.add_pipe("ner")
    random.seed(0)
    clock = time.process_time()
    optimizer, best, spent = nlp.initialize(lambda: train), (0.0, 0.0, 0.0, 0), 0.0
    for number in range(1, given.passes + 1):
        clock = time.process_time()
        random.shuffle(train)
        for batch in minibatch(fresh(train), 64):
            nlp.update(batch, sgd=optimizer, drop=0.2)
        spent += time.process_time() - clock
        f1, annotating = judged(nlp, test)
        best = max(best, (f1, spent, annotating, number))
        print(f"ner, pass {number}: trained in {spent:.1f} s, annotated in {annotating:.1f} s, F1 {100 * f1:.2f}", flush=True)
    print(f"ner, best after pass {best[3]}: {best[1]:.1f} s, F1 {100 * best[0]:.2f}")


if __name__ == "__main__":
    main()
