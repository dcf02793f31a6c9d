"""Labels that a model refuses to believe: likely mistakes in the data.

With s(y) the score of an output, y_i the given one and l its cost, what the model **believes** of example i is

    believed_i = argmax_y s(y) - b l_i(y),

b being that of the ramp loss it was trained with (Mancev 2015: 1), 0 for other losses, whose belief is their prediction. Where it
is not the given output, the example is in Mancev's set A: the ramp loss has given it up, and it has no pull on the weights
any more. These are the suspects, ranked by the **margin** of the best other output over the given one,

    margin_i = ( max_{y != y_i} s(y) - s(y_i) ) / sqrt(T_i),

T_i being the number of labelled tokens (1 for classes). The differences of tokens add up, their chance variation only with the
square root of their number: dividing by it, long sequences do not come first because they are long, nor do short ones in which a
single token is in doubt. For examples that are believed the margin is negative: they too are ranked, those first that hardly are.

The margin of a **token** is what its label costs, all else at its best: with the max-marginals M_t(c) = max_{y: y_t = c} s(y),

    margin_it = max_{c != y_t} M_t(c) - M_t(y_t),

and max_{y != y_i} s(y) = max_t max_{c != y_t} M_t(c) comes from the same pass. What is not labelled is never in doubt: of a token
with several acceptable labels the best takes the place of y_t, one without a label has margin -inf.

A model has learnt its training labels, the wrong ones too. *Cross-validated* margins (``cv=5``) are those of models that have not
seen the example: the examples are dealt out into parts at random, and each part is judged by a model of all others.

Cost: one pass with about four times the work of prediction; cross-validated, k trainings besides. Memory: a few numbers a token.

References
----------
D. Mancev (2015). A sequential dual method for the structured ramp loss minimization. Facta Universitatis 30(1).
"""

from __future__ import annotations

import copy
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.engine.threads import in_threads
from partwise.files.text_edits import EditableText
from partwise.kernels import chunks
from partwise.losses.in_loops import refer
from partwise.losses.records import get_loss
from partwise.tasks.common.error_ranking import average_precision
from partwise.tasks.common.review import Review

MOST_TEXT = 300  # characters of a suspect in the table; files and JSON have all of it


@dataclass(frozen=True)
class SuspectToken:
    """A token whose label is in doubt."""

    token: int  #: its place in the sequence
    given: Any
    believed: Any
    margin: float


@dataclass(frozen=True)
class Suspect:
    """An example whose label the model refuses to believe."""

    example: int  #: its number in X
    given: Any  #: a label, or the labels of a sequence
    believed: Any
    margin: float
    tokens: tuple[SuspectToken, ...] | None = None  #: of sequences: where the two differ, largest margin first

    def as_dict(self) -> dict[str, Any]:
        """For JSON and data frames; `tokens` only where there are any."""
        fields = asdict(self)
        if self.tokens is None:
            del fields["tokens"]
        else:
            fields["tokens"] = [asdict(token) for token in self.tokens]
        return fields


# ---------------------------------------------------------------------------------------------------------------------
# Numbers: over packed problems, for any structure with nodes
# ---------------------------------------------------------------------------------------------------------------------


class Doubts(NamedTuple):
    """What a model makes of the labels of all examples, outputs end to end."""

    starts: np.ndarray  #: (N + 1,) where the outputs of the examples begin
    margins: np.ndarray  #: (N,) -inf where nothing is labelled
    refused: np.ndarray  #: (N,) bool: what is believed is not acceptable
    believed: np.ndarray  #: (tokens,) int32
    token_margins: np.ndarray  #: (tokens,) -inf where nothing is labelled
    wrong: np.ndarray  #: (tokens,) bool: what is believed there is not acceptable


@compiled_loop
def doubt_pass(problem, b, first, last, w, theta, other, nodes, y, starts, margins, refused, believed, token_margins, wrong):
    """Fill in what `Doubts` holds for first <= i < last."""
    width = kernels.width(problem)
    for i in range(first, last):
        begin, length, parts = starts[i], starts[i + 1] - starts[i], kernels.n_parts(problem, i)
        scores, costs = theta[:parts], other[:parts]
        answer = believed[begin : begin + length]
        refer(problem, i, w, 1.0, b, scores, costs, answer, y[:length])
        given = float(kernels.complete(problem, i, scores, y[:length]))
        kernels.max_marginals(problem, i, scores, nodes)
        costs[:] = 0.0
        kernels.add_cost(problem, i, 1.0, costs)  # what is free is acceptable
        refused[i], best, labelled = False, -np.inf, 0
        for t in range(length):
            acceptable, rival = -np.inf, -np.inf
            for c in range(width):
                value = float(nodes[t * width + c])
                if costs[t * width + c] > 0.0:
                    rival = max(rival, value)
                else:
                    acceptable = max(acceptable, value)
            wrong[begin + t] = costs[t * width + answer[t]] > 0.0
            refused[i] |= wrong[begin + t]
            token_margins[begin + t] = -np.inf
            if rival > -np.inf:
                token_margins[begin + t] = rival - acceptable if acceptable > -np.inf else np.inf
                best, labelled = max(best, rival), labelled + 1
        margins[i] = -np.inf
        if labelled > 0:
            margins[i] = (best - given) / np.sqrt(labelled) if given > -np.inf else np.inf


def no_doubts(starts: np.ndarray) -> Doubts:
    """Room for what is found about outputs that begin there."""
    n, m = len(starts) - 1, int(starts[-1])
    return Doubts(starts, np.zeros(n), np.zeros(n, np.bool_), np.zeros(m, np.int32), np.zeros(m), np.zeros(m, np.bool_))


def doubts(problem: Any, w: np.ndarray, b: float, n_jobs: int | None = None) -> Doubts:
    """What weights w make of the labels of a problem, in threads."""
    starts, parts = kernels.sizes(problem)
    longest, found = int(np.diff(starts).max(initial=0)), no_doubts(starts)

    def run(chunk):
        nodes = np.zeros(longest * kernels.width(problem))
        doubt_pass(problem, b, *chunk, w, np.zeros(parts), np.zeros(parts), nodes, np.zeros(longest, np.int32), *found)

    in_threads(run, chunks(problem), n_jobs)
    return found


def dealt(n: int, k: int, seed: int) -> np.ndarray:
    """Which of k parts each of n examples is in, (n,)."""
    return np.random.default_rng((seed, 3)).permutation(n) % k


def cross_validated(problem: Any, train: Callable[[Any, np.ndarray], np.ndarray], b: float, k: int, seed: int, n_jobs) -> Doubts:
    """The same, every example being judged by weights that ``train(problem, which)`` learnt from other examples."""
    starts, _ = kernels.sizes(problem)
    n = len(starts) - 1
    if n < k:
        raise ValueError(f"The 'cv' parameter is {k}, but there are {n} examples only.")
    part = dealt(n, k, seed)
    part_of_token = np.repeat(part, np.diff(starts))
    whole = no_doubts(starts)
    for fold in range(k):
        mine, others = np.flatnonzero(part == fold), np.flatnonzero(part != fold)
        found = doubts(kernels.take(problem, mine), train(kernels.take(problem, others), others), b, n_jobs)
        whole.margins[mine], whole.refused[mine] = found.margins, found.refused
        tokens = part_of_token == fold
        whole.believed[tokens], whole.token_margins[tokens], whole.wrong[tokens] = (
            found.believed,
            found.token_margins,
            found.wrong,
        )
    return whole


# ---------------------------------------------------------------------------------------------------------------------
# What estimators say
# ---------------------------------------------------------------------------------------------------------------------


class Judged(NamedTuple):
    """Doubts, and the labels they are about."""

    found: Doubts
    given: Sequence[Any]  #: labels of all examples or tokens, end to end, as they were given
    believed: Sequence[Any]  #: likewise

    def ranked(self, threshold: float | None, top: int | None) -> list[int]:
        """Numbers of the suspects, largest margin first: those refused, with a threshold those of them with a larger margin."""
        if threshold is not None and not (isinstance(threshold, Real) and threshold >= 0):
            raise ValueError(
                f"The 'threshold' parameter must be a float in the range [0, inf) or None. Got {threshold!r} instead."
            )
        if top is not None and not (isinstance(top, Integral) and not isinstance(top, bool) and top >= 0):
            raise ValueError(f"The 'top' parameter must be an int in the range [0, inf) or None. Got {top!r} instead.")
        chosen = self.found.refused if threshold is None else self.found.refused & (self.found.margins > threshold)
        return in_order(self.found.margins, chosen)[:top].tolist()


def in_order(margins: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The numbers of those chosen, largest margin first."""
    numbers = np.flatnonzero(chosen)
    return numbers[np.argsort(-margins[numbers], kind="stable")]


def learn_and_doubt(
    model: Any, problem: Any, threshold: Any, cv: Any, weight: np.ndarray | None = None, judges: list[Any] | None = None
) -> Doubts:
    """The doubts of a fitted model about a labelled problem; or, with `cv`, those of others with its parameters.

    These others are put into the list `judges`, if there is one: the first is the one that has judged part 0 (`dealt`).
    """
    loss = get_loss(model.loss)
    b = float(getattr(loss, "b", 0.0)) if threshold is None else 0.0
    if cv is None:
        return doubts(problem, model.weights_, b, model.n_jobs)
    if not isinstance(cv, Integral) or isinstance(cv, bool) or cv < 2:
        raise ValueError(f"The 'cv' parameter must be an int in the range [2, inf) or None. Got {cv!r} instead.")
    seed = model._seed()

    def train(part: Any, which: np.ndarray) -> np.ndarray:
        learner = unfitted(model)
        learner._solve(part, loss, None if weight is None else weight[which], None, None, seed)
        if judges is not None:
            judges.append(learner)
        return learner.weights_

    return cross_validated(problem, train, b, int(cv), seed, model.n_jobs)


def fitted_like(model: Any, learner: Any, **learnt: Any) -> Any:
    """A model that knows what `model` knows and what else was learnt, with the weights of `learner`."""
    made = copy.copy(model)
    vars(made).update(learnt, weights_=learner.weights_, temperature_=learner.temperature_)
    return made


def unfitted(model: Any) -> Any:
    """Another one with the same parameters, that says nothing."""
    other = type(model)(**model.parameters())
    other.verbose, other.callbacks = 0, None
    return other


# ---------------------------------------------------------------------------------------------------------------------
# What ``partwise suspects`` lists
# ---------------------------------------------------------------------------------------------------------------------


class Listed(NamedTuple):
    """A suspect in a list."""

    cells: tuple[Any, ...]  #: of its line, one for each title of the `Listing`
    as_dict: Callable[[], dict[str, Any]]  #: for machines


@dataclass(frozen=True)
class Listing:
    """All suspects of a file, worst first.

    Titles are ``example``, ``line`` (where it is), ``margin``; ``given`` and ``believed`` where a suspect has one label of each;
    ``text``, which people are shown; and others that only files have.
    """

    titles: tuple[str, ...]
    rows: list[Listed]
    judged: tuple[int, str]  #: how many there are in all, and of what: (120, "sentences")
    about: dict[str, Any]  #: for machines: ``loss``, ``folds``, and how much was judged
    context: str = ""  #: title of the column `text`
    truth: dict[str, Any] | None = None  #: what `found_among` says, where it is known which labels are wrong
    #: the first so many, to be looked at and corrected in that text; None: they cannot be
    review: Callable[[EditableText, int | None], Review] | None = None

    def in_words(self) -> list[str]:
        """What people are told before the list."""
        n, what = self.judged
        folds = self.about["folds"]
        how = f"judged in {folds} parts by models of the others" if folds else "judged by one model"
        lines = [f"{len(self.rows):,} of {n:,} {what} are not believed ({how}, loss {self.about['loss']})"]
        if (truth := self.truth) is not None:
            names = ("precision", "recall", "average_precision")
            parts = ", ".join(f"{name.replace('_', ' ')} {100 * truth[name]:.2f} %" for name in names)
            lines.append(f"{truth['wrong']:,} are wrong, {truth['found']:,} of them found: {parts}")
        return lines

    def table(self, n: int) -> Any:
        """The first n, for people."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        titles = [title for title in ("given", "believed") if title in self.titles]
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for title in ("line", "margin"):
            table.add_column(title, justify="right", no_wrap=True)
        for title in titles:
            table.add_column(title, no_wrap=True)
        if self.context:
            table.add_column(Text(self.context))
        for row in self.rows[:n]:
            cells = dict(zip(self.titles, row.cells, strict=True))
            last = [Text(textwrap.shorten(cells["text"], MOST_TEXT, placeholder=" ..."))] if self.context else []
            labels = [Text(str(cells[title])) for title in titles]
            table.add_row(f"{cells['line']:,}", f"{cells['margin']:.2f}", *labels, *last)
        return table

    def as_text(self, n: int | None = None) -> bytes:
        """The first n, tab-separated, a line each, after a line of titles."""
        lines = ["\t".join(self.titles)]
        for row in self.rows[:n]:
            cells = (f"{value:.6g}" if isinstance(value, float) else str(value) for value in row.cells)
            lines.append("\t".join(cell.replace("\t", " ") for cell in cells))
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def found_among(wrong: np.ndarray, refused: np.ndarray, suspicion: np.ndarray) -> dict[str, Any]:
    """How many of the labels that are really wrong are among those refused, bool (n,), and how well they are ranked."""
    hits, n, total = (int(np.count_nonzero(x)) for x in (wrong & refused, refused, wrong))
    return {
        "wrong": total,
        "found": hits,
        "precision": hits / n if n else math.nan,
        "recall": hits / total if total else math.nan,
        "average_precision": average_precision(wrong, suspicion),
    }
