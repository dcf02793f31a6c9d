"""What ``partwise suspects`` lists of a treebank: sentences, or single words, whose heads or relations are probably wrong."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.suspect_list import Listed, Listing, about_judgement, found_among
from partwise.tasks.dependency.files import Treebank, read_treebank
from partwise.tasks.dependency.review import review_trees, sentence_of
from partwise.tasks.dependency.suspects import JudgedTrees

AROUND = 3  # words shown on either side of a word in doubt
SENTENCE = ("example", "line", "probability", "text")
WORD = (*SENTENCE, "word", "form", "given", "believed")


def list_suspects(model: Any, file: str, options: Any, seconds: Seconds) -> Listing:
    """Judge the trees of a file by a trained model, or by others with its parameters."""
    treebank, folds = read_treebank(file, options.encoding), options.folds_to_judge()
    right = None if options.truth is None else read_truth(options.truth, options.encoding, treebank)
    seconds("read")
    model.random_state = options.random_state
    judged = model.judge(treebank, folds=folds)
    ranked = judged.ranked_parts(options.precision) if options.parts else judged.ranked(options.precision)
    return Listing(
        WORD if options.parts else SENTENCE,
        [word_row(treebank, judged, t) if options.parts else sentence_row(treebank, judged, t) for t in ranked],
        (treebank.words.n_tokens, "words") if options.parts else (len(treebank), "sentences"),
        {
            **about_judgement(model, folds, judged.found, options.parts),
            "sequences": len(treebank),
            "tokens": treebank.words.n_tokens,
        },
        "in context" if options.parts else "words in doubt: [word given > believed]",
        None if right is None else found_of(right, treebank, judged, ranked, options.parts),
        lambda source, top: review_trees(judged, treebank, source, ranked[:top], options.parts, options.encoding),
    )


def read_truth(file: str, encoding: str, treebank: Treebank) -> Treebank:
    """The same sentences with other trees."""
    right = read_treebank(file, encoding)
    if not np.array_equal(right.words.starts, treebank.words.starts):
        raise Refusal(f"--truth {file}: it must have the sentences of {treebank.name}, with other heads and relations only.")
    return right


def found_of(right: Treebank, treebank: Treebank, judged: JudgedTrees, listed: list[int], words: bool) -> dict[str, Any]:
    """How many of the words that are not those of another file are among the suspects; relations count where they are judged."""
    wrong = right.heads != treebank.heads
    if judged.relations is not None:
        theirs, ours = ([some.names[k] if k >= 0 else "_" for k in some.relations.tolist()] for some in (right, treebank))
        wrong |= np.array([a != b for a, b in zip(theirs, ours, strict=True)], bool)
    if words:
        return found_among(wrong, listed, judged.found.parts)
    in_sentences = np.diff(np.concatenate([[0], np.cumsum(wrong)])[treebank.words.starts]) > 0
    return found_among(in_sentences, listed, judged.found.examples)


# ---------------------------------------------------------------------------------------------------------------------
# Rows
# ---------------------------------------------------------------------------------------------------------------------


def sentence_row(treebank: Treebank, judged: JudgedTrees, i: int) -> Listed:
    """A sentence that is probably wrong."""
    words = treebank.forms(i)
    line = int(treebank.at[treebank.words.starts[i]]) + 1

    def as_dict() -> dict[str, Any]:
        return {**judged.suspect(i).as_dict(), "line": line, "words": words}

    return Listed((i, line, judged.wrong(i), marked(treebank, judged, i)), as_dict)


def word_row(treebank: Treebank, judged: JudgedTrees, t: int) -> Listed:
    """A word that is probably wrong."""
    i = sentence_of(treebank.words.starts, t)
    words, k = treebank.forms(i), t - int(treebank.words.starts[i])
    around = range(max(0, k - AROUND), min(len(words), k + AROUND + 1))
    text = " ".join(f"[{words[n]}]" if n == k else words[n] for n in around)
    line = int(treebank.at[t]) + 1
    cells = (i, line, judged.wrong_part(t), text, k + 1, words[k], *(arc(words, said) for said in parts_of(judged, t)))
    said = {title: cell for title, cell in zip(WORD, cells, strict=True) if title not in ("text", "given", "believed")}
    given, believed = parts_of(judged, t)
    return Listed(cells, functools.partial(dict, {**said, "given": given, "believed": believed}))


def parts_of(judged: JudgedTrees, t: int) -> tuple[Any, Any]:
    """What is given and what is believed of word t."""
    assert judged.part is not None
    return judged.part(t)


def arc(words: list[str], said: Any) -> str:
    """A head, its word and the relation to it: ``4:buy nsubj``."""
    head, relation = said if isinstance(said, tuple) else (said, None)
    name = "?" if head is None else "0" if head == 0 else f"{head}:{words[head - 1]}"
    return name if relation is None else f"{name} {relation}"


def marked(treebank: Treebank, judged: JudgedTrees, i: int) -> str:
    """A sentence, its words in doubt with both arcs, long stretches without any left out."""
    words, first = treebank.forms(i), int(treebank.words.starts[i])
    wrong = judged.found.evidence.disputed[first : first + len(words)].tolist()
    pieces: list[str] = []
    for k, doubted in enumerate(wrong):
        if doubted:
            given, believed = (arc(words, said) for said in parts_of(judged, first + k))
            pieces.append(f"[{words[k]} {given} > {believed}]")
        elif any(wrong[max(0, k - AROUND) : k + AROUND + 1]):
            pieces.append(words[k])
        elif not pieces or pieces[-1] != "...":
            pieces.append("...")
    return " ".join(pieces)
