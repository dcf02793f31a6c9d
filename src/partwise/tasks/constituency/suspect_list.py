"""What ``partwise suspects`` lists of trees in brackets: trees, or single brackets, that are probably wrong."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import numpy as np

from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.suspect_list import Listed, Listing, about_judgement, found_among
from partwise.tasks.constituency.files import Brackets, read_brackets
from partwise.tasks.constituency.review import review_brackets
from partwise.tasks.constituency.suspects import JudgedBrackets, chains

TREE = ("example", "line", "probability", "text")
BRACKET = (*TREE, "begin", "end", "given", "believed")


def list_suspects(model: Any, file: str, options: Any, seconds: Seconds) -> Listing:
    """Judge the trees of a file by a trained model, or by others with its parameters."""
    reading = {"encoding": options.encoding, "traces": options.traces, "functions": options.functions}
    data, folds = read_brackets(file, **reading), options.folds_to_judge()
    right = None if options.truth is None else read_truth(options.truth, reading, data)
    seconds("read")
    model.random_state = options.random_state
    judged = model.judge(data, folds=folds)
    ranked = judged.ranked_parts(options.precision) if options.parts else judged.ranked(options.precision)
    # a tree is corrected as a whole: of its brackets the worst decides where it stands
    trees = list(dict.fromkeys(tree_of(judged, k) for k in ranked)) if options.parts else ranked
    return Listing(
        BRACKET if options.parts else TREE,
        [bracket_row(data, judged, k) if options.parts else tree_row(data, judged, k) for k in ranked],
        (len(judged.brackets), "brackets") if options.parts else (len(data), "trees"),
        {
            **about_judgement(model, folds, judged.found, options.parts),
            "sequences": len(data),
            "tokens": data.n_words,
            "brackets": len(judged.brackets),
        },
        "the bracket" if options.parts else "brackets in doubt: [given words > believed], + what is missing",
        None if right is None else found_of(right, data, judged, ranked, options.parts),
        lambda source, top: review_brackets(judged, data, source, trees[:top], reading),
    )


def read_truth(file: str, reading: dict[str, Any], data: Brackets) -> Brackets:
    """The same sentences with other trees."""
    right = read_brackets(file, **reading)
    if [tree.words() for tree in right.trees] != [tree.words() for tree in data.trees]:
        raise Refusal(f"--truth {file}: it must have the sentences of {data.name}, with other brackets only.")
    return right


def found_of(right: Brackets, data: Brackets, judged: JudgedBrackets, listed: list[int], brackets: bool) -> dict[str, Any]:
    """How many of the brackets that another file does not have, or of the trees that are others, are among the suspects."""
    if not brackets:
        wrong = [set(chains(a)) != set(chains(b)) for a, b in zip(right.trees, data.trees, strict=True)]
        return found_among(np.array(wrong, bool), listed, judged.found.examples)
    there = [set(chains(tree)) for tree in right.trees]
    wrong = [bracket not in there[tree_of(judged, k)] for k, bracket in enumerate(judged.brackets)]
    return found_among(np.array(wrong, bool), listed, judged.found.parts)


def tree_of(judged: JudgedBrackets, k: int) -> int:
    """The tree of bracket k of all."""
    return int(np.searchsorted(judged.found.evidence.starts, k, side="right")) - 1


# ---------------------------------------------------------------------------------------------------------------------
# Rows
# ---------------------------------------------------------------------------------------------------------------------


def tree_row(data: Brackets, judged: JudgedBrackets, i: int) -> Listed:
    """A tree that is probably wrong."""

    def as_dict() -> dict[str, Any]:
        made = judged.suspect(i).as_dict()
        return {**made, "given": str(data.trees[i]), "believed": str(judged.trees[i]), "line": data.lines[i]}

    return Listed((i, data.lines[i], judged.wrong(i), marked(data, judged, i)), as_dict)


def bracket_row(data: Brackets, judged: JudgedBrackets, k: int) -> Listed:
    """A bracket that is probably wrong."""
    i, (label, begin, end) = tree_of(judged, k), judged.brackets[k]
    words = data.trees[i].words()
    cells = (i, data.lines[i], judged.wrong_part(k), " ".join(words[begin:end]), begin, end, label, believed_there(judged, k))
    said = {title: cell for title, cell in zip(BRACKET, cells, strict=True) if title != "text"}
    return Listed(cells, functools.partial(dict, {**said, "words": words[begin:end]}))


def believed_there(judged: JudgedBrackets, k: int) -> str:
    """The labels that are believed in place of those of bracket k; ``-`` for none."""
    assert judged.part is not None
    believed = judged.part(k)[1]
    return "-" if believed is None else believed[0]


def marked(data: Brackets, judged: JudgedBrackets, i: int) -> str:
    """The brackets of a tree that are in doubt, in their order, and those that are believed and not given."""
    words, first = data.trees[i].words(), int(judged.found.evidence.starts[i])
    pieces = []
    for k in sorted(judged.doubted(i)):
        label, begin, end = judged.brackets[k]
        pieces.append(f"[{label} {' '.join(words[begin:end])} > {believed_there(judged, k)}]")
    own = judged.brackets[first : int(judged.found.evidence.starts[i + 1])]
    spans = Counter((begin, end) for _, begin, end in own)
    pieces += [f"+{label} {' '.join(words[a:b])}" for label, a, b in chains(judged.trees[i]) if not spans[a, b]]
    return " ".join(pieces)
