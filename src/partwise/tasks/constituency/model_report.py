"""What ``partwise report`` tells of a constituency parser: brackets and their labels, tags, trees with mistakes."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np

from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.model_report import (
    Confusions,
    MarkedWord,
    ModelReport,
    Panel,
    Reliability,
    ShownExample,
    WeightList,
    label_table,
    note_unknown,
    numbered,
    reliability,
    require_truth,
    score_rows,
    side_by_side,
    worst_first,
)
from partwise.tasks.common.resampling import Measure, ratio
from partwise.tasks.constituency.drawing import as_svg
from partwise.tasks.constituency.files import Brackets, Constituent
from partwise.tasks.constituency.grammar import is_partial
from partwise.tasks.constituency.inspection import named, strongest
from partwise.tasks.constituency.scores import PUNCTUATION, brackets

NONE = "(none)"  #: of a bracket that has no counterpart
ROOTS = ("TOP", "ROOT")  #: brackets that do not count, as in `partwise.metrics.bracket_scores`
STRONGEST = 12  # rules of highest weight, and as many of lowest
AROUND = 5  # words that are shown on either side of a bracket


class ComparedBracket(NamedTuple):
    """Words that are under a bracket in the true tree, in the answered one, or in both."""

    tree: int
    begin: int
    end: int
    true: str
    answered: str


def report(parser: Any, data: Any, options: Any) -> ModelReport:
    """Compare a parser's trees with those of a file."""
    if not isinstance(data, Brackets):
        raise Refusal("There are no trees in this file to compare with: expected brackets, (S (NP (DT the) (NN dog)) ...).")
    whole = [i for i, tree in enumerate(data.trees) if not is_partial(tree)]
    notes = [f"trees that are not complete, and do not count: {len(data) - len(whole):,}"] if len(whole) < len(data) else []
    data = data.take(whole)
    require_truth(len(data), data.name, "complete trees")
    answers = parser.predict(data)
    if len(parser.unparsed_):
        notes.append(f"sentences without a tree of the grammar, whose answers are glued of parts: {len(parser.unparsed_):,}")
    pairs = [compare_brackets(i, a, b) for i, (a, b) in enumerate(zip(data.trees, answers, strict=True))]
    every = [pair for some in pairs for pair in some]
    names, (true, answered) = numbered([pair.true for pair in every], [pair.answered for pair in every])
    used = sorted({pair.true for pair in every if pair.true != NONE})
    notes += note_unknown(used, parser.classes_.tolist(), data.name, "labels") if used else []
    confusions = Confusions(true, answered, names)
    n_wrong = np.array([sum(pair.true != pair.answered for pair in some) for some in pairs])
    owner = np.array([pair.tree for pair in every], np.int64)

    def note(i: int) -> str:
        return f"{n_wrong[i]} of {len(pairs[i])} brackets wrong"

    def show_bracket(t: int) -> ShownExample:
        pair = every[t]
        return ShownExample(f"line {data.lines[pair.tree]:,}", note(pair.tree), [around(pair, data.trees[pair.tree].words())])

    def show(i: int) -> ShownExample:
        return ShownExample(f"line {data.lines[i]:,}", note(i), side_by_side(as_svg(data.trees[i]), as_svg(answers[i])))

    mistakes, more = confusions.kinds(n_wrong[owner].astype(float) if len(owner) else np.zeros(0), show_bracket, owner)
    counts = {name: found for name, found in confusions.by_label().items() if name != NONE}
    return ModelReport(
        scores=score_rows(measures(data.trees, answers), options),
        unit="trees",
        tables=[label_table(counts, "Brackets", "label", "A bracket is right if its label and its words are.")],
        confusion=confusions.table("brackets"),
        mistakes=mistakes,
        more_mistakes=more,
        mistaken=f"Brackets over the same words; {NONE}: there is no such bracket. First those in trees with the most mistakes.",
        worst=[show(i) for i in worst_first(n_wrong, np.array([len(some) for some in pairs]), options.worst)],
        ordered="The most wrong brackets for its size first.",
        reliability=calibration(parser, data, answers),
        weights=weights(parser),
        notes=notes,
    )


def spans_of(tree: Constituent) -> Counter[tuple[str, int, int]]:
    """The brackets that count."""
    return Counter(span for span in tree.spans() if span[0] not in ROOTS)


def compare_brackets(i: int, true: Constituent, answered: Constituent) -> list[ComparedBracket]:
    """Brackets of two trees put together: those that are the same, then those over the same words, then what is left."""
    a, b = spans_of(true), spans_of(answered)
    same = a & b
    found = [ComparedBracket(i, begin, end, label, label) for label, begin, end in same.elements()]
    left: defaultdict[tuple[int, int], tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for side, some in enumerate((a - same, b - same)):
        for label, begin, end in some.elements():
            left[begin, end][side].append(label)
    for (begin, end), (first, second) in sorted(left.items()):
        n = max(len(first), len(second))
        both = zip(first + [NONE] * (n - len(first)), second + [NONE] * (n - len(second)), strict=True)
        found += [ComparedBracket(i, begin, end, x, y) for x, y in both]
    return found


def around(pair: ComparedBracket, words: list[str]) -> Panel:
    """The words of a bracket, and some before and after them."""
    begin, end = max(pair.begin - AROUND, 0), min(pair.end + AROUND, len(words))
    before, after = words[begin : pair.begin], words[pair.end : end]
    found = [MarkedWord("…", "")] if begin else []
    found += [MarkedWord(word, "") for word in before]
    found.append(MarkedWord(" ".join(words[pair.begin : pair.end]), pair.true, pair.answered))
    found += [MarkedWord(word, "") for word in after]
    return Panel("words", found + ([MarkedWord("…", "")] if end < len(words) else []))


def measures(truth: list[Constituent], answers: list[Constituent]) -> list[Measure]:
    """Labelled brackets, with punctuation and without, trees and tags."""
    rows = []
    for a, b in zip(truth, answers, strict=True):
        leaves = a.leaves()
        row: list[float] = []
        for ignore in ((), PUNCTUATION):
            position = np.concatenate([[0], np.cumsum([tag not in ignore for _, tag in leaves])]).astype(int).tolist()
            first, second = brackets(a, position, ROOTS), brackets(b, position, ROOTS)
            row += [(first & second).total(), first.total(), second.total(), first == second]
        tags = sum(x[1] == y[1] for x, y in zip(leaves, b.leaves(), strict=True))
        rows.append([*row, tags, len(leaves)])
    both, has, got, exact, bare_both, bare_has, bare_got, _, tags, words = np.array(rows, float).T
    return [
        ratio("f1", "F1 of brackets", 2 * both, has + got),
        ratio("precision", "precision of brackets", both, got),
        ratio("recall", "recall of brackets", both, has),
        ratio("exact", "trees all right", exact, np.ones(len(rows))),
        ratio("f1_no_punct", "F1 without punctuation", 2 * bare_both, bare_has + bare_got),
        ratio("tags", "tags right", tags, words),
    ]


def calibration(parser: Any, data: Brackets, answers: list[Constituent]) -> Reliability | None:
    """Whether brackets of probability p are right in p of the cases."""
    if parser.temperature_ is None:
        return None
    p, right = [], []
    for own, true, answered in zip(parser.predict_marginals(data), data.trees, answers, strict=True):
        there = spans_of(true)
        for span in spans_of(answered):
            p.append(own.get(span, 0.0))
            right.append(span in there)
    return reliability(p, right, "brackets")


def weights(parser: Any) -> list[WeightList]:
    """The rules of highest and of lowest weight; without a grammar, the symbols."""
    ordered = strongest(parser)
    some = ordered if len(ordered) <= 2 * STRONGEST else [*ordered[:STRONGEST], *ordered[-STRONGEST:]]
    return [WeightList(named(parser), some)]
