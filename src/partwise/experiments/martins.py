"""What the experiments of Martins et al. (2010) share: entities and trees, read and packed; a score for a part of the data.

The paper has CoNLL-2003 English entities, and Arabic, Danish and English trees of CoNLL-X and CoNLL-2008. Here are the corpora
that can be had: CoNLL-2002 Spanish and Dutch and WNUT-17 for entities; UD English-EWT, Danish (DDT, CoNLL-X), Basque
(CoNLL-2007), UD Greek and UD Turkish for trees. Features of entities are the template set ``ner`` (words, forms, affixes; no
gazetteers), those of arcs the first-order set. Scores are F1 of whole entities, and UAS without punctuation.

Models of second order see siblings and grandparents too, of the arcs that a CRF of first order, learnt on the training part by
`PRUNER_EPOCHS` epochs of DCA, finds worth it.

C is that of the paper, 1 / (lambda m). Everything is chosen on the held-out part; Basque has none, so every tenth training
sentence is held out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ENTITIES = {
    "spanish": tuple(f"conll2002/esp.{part}.txt.gz" for part in ("train", "testa", "testb")),
    "dutch": tuple(f"conll2002/ned.{part}.txt.gz" for part in ("train", "testa", "testb")),
    "wnut17": tuple(f"wnut17/{part}.txt.gz" for part in ("train", "dev", "test")),
}
TREES = {
    "english": tuple(f"ud_english_ewt/en_ewt-ud-{part}.conllu.gz" for part in ("train", "dev", "test")),
    "danish": tuple(f"ddt_conllx/danish_ddt_{part}.conll.gz" for part in ("train", "dev", "test")),
    "basque": ("conll2007/eus.train.conll.gz", "conll2007/eus.test.conll.gz"),
    "greek": tuple(f"ud_greek_gdt/el_gdt-ud-{part}.conllu.gz" for part in ("train", "dev", "test")),
    "turkish": tuple(f"ud_turkish_imst/tr_imst-ud-{part}.conllu.gz" for part in ("train", "dev", "test")),
}
ENCODINGS = {"basque": "iso-8859-1"}
PRUNER_C, PRUNER_EPOCHS, CANDIDATES = 0.1, 5, 10  # of the model that chooses arcs, and heads that it leaves for each word
HELD_OUT = 10  # one sentence of so many, where there is no held-out part


def files_of(*corpora: str) -> tuple[str, ...]:
    """Below the data folder."""
    return tuple(file for corpus in corpora for file in (ENTITIES | TREES)[corpus])


class CorpusParts(NamedTuple):
    """A training problem, and how good weights are on the other parts."""

    train: Any
    dev: Callable[[Any], float]  #: per cent
    test: Callable[[Any], float]


@functools.lru_cache(maxsize=1)
def read_parts(
    data: Path, corpus: str, sentences: int | None = None, bits: int = 22, order: int = 1, sums: str = "bethe"
) -> CorpusParts:
    """A corpus; at most so many sentences of each part. `bits`: there are 2^bits features of arcs. `order`, `sums`: of trees."""
    if corpus in ENTITIES:
        return read_entities(data, corpus, sentences)
    return read_trees(data, corpus, sentences, bits, order, sums)


def read_entities(data: Path, corpus: str, sentences: int | None) -> CorpusParts:
    """Words and entities; parts of speech, where there are any, are not looked at."""
    import numpy as np

    from partwise.experiments.tagging import make_splits
    from partwise.text.columns import read_columns

    separator, columns = ("\t", (0, 1)) if corpus == "wnut17" else (" ", (0, 2))
    parts = [read_columns(data / file, separator, usecols=columns) for file in ENTITIES[corpus]]
    if sentences is not None:
        parts = [part.take(np.arange(min(sentences, len(part)))) for part in parts]
    dev, test = make_splits(parts[0], parts[1:], "ner")
    return CorpusParts(dev.train, lambda w: dev.scores(w)["f1"], lambda w: test.scores(w)["f1"])


def read_trees(data: Path, corpus: str, sentences: int | None, bits: int, order: int, sums: str) -> CorpusParts:
    """Arcs with hashed features; single-rooted if all training trees are."""
    import numpy as np

    from partwise.experiments.tagging import train
    from partwise.features.arc_pairs import pair_rows
    from partwise.features.arc_rows import arc_rows
    from partwise.metrics import attachment_scores
    from partwise.objective import best_outputs
    from partwise.solvers.dca import DCA
    from partwise.structures.dependency.problem import tree_problem
    from partwise.structures.dependency.second_order import second_order_problem
    from partwise.tasks.dependency.data import one_root, read_sentences
    from partwise.tasks.dependency.files import COLUMNS, read_treebank
    from partwise.tasks.dependency.pruning import likely_arcs

    parts = []
    for file in TREES[corpus]:
        treebank = read_treebank(data / file, ENCODINGS.get(corpus, "utf-8"), sentences)
        parts.append((read_sentences(treebank, None, None), treebank.is_punctuation()))
    if len(parts) == 2:
        given, punctuation = parts[0]
        held = np.arange(len(given.lengths)) % HELD_OUT == HELD_OUT - 1
        of_word = np.repeat(held, given.lengths)
        kept = (given.take(np.flatnonzero(~held)), punctuation[~of_word])
        parts = [kept, (given.take(np.flatnonzero(held)), punctuation[of_word]), parts[1]]
    single_root = bool(one_root(parts[0][0]).all())

    def pack_first(given: Any, labelled: bool) -> Any:
        rows = arc_rows(given.words, COLUMNS, bits=bits)
        return tree_problem(rows, given.lengths, given.heads if labelled else None, single_root=single_root)

    pack = pack_first
    if order == 2:
        pruner = train(pack_first(parts[0][0], True), "crf", DCA(), PRUNER_C, PRUNER_EPOCHS, 0).w

        def pack(given: Any, labelled: bool) -> Any:
            first = pack_first(given, False)
            allowed = likely_arcs(first, pruner, 1.0, CANDIDATES)
            heads, pairs = given.heads if labelled else None, pair_rows(first.rows, given.lengths, COLUMNS)
            return second_order_problem(first.rows, pairs, given.lengths, allowed, heads, single_root=single_root, sums=sums)

    def judge(given: Any, punctuation: Any) -> Callable[[Any], float]:
        problem = pack(given, labelled=False)
        return lambda w: 100 * attachment_scores(given.heads, best_outputs(problem, w)[0], ignore=punctuation).uas

    return CorpusParts(pack(parts[0][0], labelled=True), judge(*parts[1]), judge(*parts[2]))
