"""Why a token got its label rather than another.

A linear model can be read: its score of a labelling is a sum of weights,

    s(y) = sum_t x_t . W[:, y_t] + sum_t A[.., y_{t-1}, y_t] + stop[y_T]

so it can be said which of them made the difference between two answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from partwise.features.given_labels import GivenLabels
from partwise.features.rows import Dense, Sparse
from partwise.objective import best_outputs
from partwise.tasks.tagging.decoder import Decoder
from partwise.tasks.tagging.weights import BEGIN, END, place_of
from partwise.text.columns import Columns


@dataclass(frozen=True)
class Contribution:
    """A part of the difference between two labellings: what it adds to the score of each."""

    name: str
    chosen: float
    other: float

    @property
    def difference(self) -> float:
        """What it says for the chosen one; against it if negative."""
        return self.chosen - self.other


@dataclass(frozen=True)
class Explanation:
    """Why a token has its label rather than another; made by `explain`.

    Two labellings of the sentence are compared: the best one, and the best of those that give the token the other label. They may
    differ in other tokens too, because those would follow. All contributions add up to the difference of their scores.

    Attributes
    ----------
    sentence, token : int
    label, against : labels
        The token's label in the one and the other.
    labels, other_labels : list
        The two labellings, whole. (Contributions are of states where labels have several, and named after them.)
    score, other_score : float
        Their scores.
    features : list of Contribution
        Of the features of the token, the largest difference first.
    transitions : list of Contribution
        Into and out of the token.
    elsewhere : list of Contribution
        Where the two differ at other tokens, in their order.
    """

    sentence: int
    token: int
    label: Any
    against: Any
    labels: list[Any] = field(repr=False)
    other_labels: list[Any] = field(repr=False)
    features: list[Contribution] = field(repr=False)
    transitions: list[Contribution] = field(repr=False)
    elsewhere: list[Contribution] = field(repr=False)
    score: float
    other_score: float

    @property
    def difference(self) -> float:
        """By how much the chosen labelling is better: the sum of all contributions."""
        return math.fsum(one.difference for one in self.contributions())

    def contributions(self) -> Iterator[Contribution]:
        """All of them."""
        yield from self.features
        yield from self.transitions
        yield from self.elsewhere

    def __str__(self) -> str:
        """A table."""
        lines = [f"token {self.token} of sequence {self.sentence}: {self.label} rather than {self.against}", ""]
        shown = [("features of the token", self.features), ("transitions", self.transitions), ("elsewhere", self.elsewhere)]
        width = max([len(one.name) for one in self.contributions()] + [22])
        lines.append(f"{'':{width}}  {str(self.label):>10}  {str(self.against):>10}  difference")
        for title, part in shown:
            lines.append(title)
            lines += [f"{one.name:{width}}  {one.chosen:10.4f}  {one.other:10.4f}  {one.difference:+10.4f}" for one in part]
        lines.append(f"{'in all':{width}}  {'':10}  {'':10}  {self.difference:+10.4f}")
        return "\n".join(lines)


def explain(model: Decoder, X: Any, sentence: int, token: int, against: Any = None, known: Any = None) -> Explanation:
    """Why a token got its label rather than another one.

    Parameters
    ----------
    model : SequenceLabeler
    X : sequences, or Columns
        As for ``model.predict``, in a list.
    sentence, token : int
        Which one, counted from 0.
    against : label, optional
        The other label; by default the runner-up: the one whose best labelling has the highest score.
    known : labels of that sentence, optional
        What is already known of them, as in ``model.predict``; one entry for each token.

    Returns
    -------
    Explanation

    Notes
    -----
    Cost: one oracle call for each label, on one sentence.
    """
    one = _one_sentence(X, sentence)
    n_tokens = one.n_tokens if isinstance(one, Columns) else one[0].shape[0] if hasattr(one[0], "shape") else len(one[0])
    if not -n_tokens <= token < n_tokens:
        raise ValueError(f"There is no token {token} in sequence {sentence}, which has {n_tokens}, counted from 0.")
    token, labels, hidden = range(n_tokens)[token], model.classes_.tolist(), model.hidden
    candidates = list(range(len(labels))) if against is None else [place_of(model, against)]
    # one copy of the sentence for each candidate, with the token's label fixed to it, and one copy as it is
    copies = len(candidates) + 1
    if known is not None and len(known) != n_tokens:
        raise ValueError(f"known has {len(known)} labels, but sequence {sentence} has {n_tokens} tokens.")
    fixed: list[Any] = [None, *map(frozenset, [[label] for label in labels])]
    codes = np.zeros((copies, n_tokens), np.int32)
    if known is not None:
        fixed += [label if label is None or isinstance(label, frozenset) else frozenset(_as_set(label)) for label in known]
        codes[:] = np.arange(len(labels) + 1, len(fixed))
    codes[np.arange(1, copies), token] = np.array(candidates) + 1
    several = one.take([0] * copies) if isinstance(one, Columns) else one * copies
    packed = model.pack(several, known=GivenLabels(codes.reshape(-1), fixed))
    problem = packed.problem
    outputs, _, values = best_outputs(problem, model.weights_)
    packed.refuse_impossible(values[:1])
    outputs = outputs.reshape(copies, n_tokens)
    chosen = outputs[0]
    rivals = [k for k in range(1, copies) if candidates[k - 1] != chosen[token] // hidden and values[k] > -np.inf]
    if not rivals:
        label = labels[chosen[token] // hidden]
        if against is None:
            raise ValueError(f"Token {token} of sequence {sentence} can have no other label than {label!r}.")
        why = "that is its label" if against == label else "no labelling with it obeys the constraints"
        raise ValueError(f"Token {token} of sequence {sentence} cannot be compared with {against!r}: {why}.")
    other = outputs[max(rivals, key=lambda k: values[k])]
    features, links, elsewhere = compare(model, problem, chosen, other, token)
    totals = [math.fsum(_part_scores(model, problem, y)) for y in (chosen, other)]
    return Explanation(
        sentence=range(len(X))[sentence],
        token=token,
        label=labels[chosen[token] // hidden],
        against=labels[other[token] // hidden],
        labels=[labels[c // hidden] for c in chosen],
        other_labels=[labels[c // hidden] for c in other],
        features=sorted(features, key=lambda part: -abs(part.difference)),
        transitions=links,
        elsewhere=elsewhere,
        score=totals[0],
        other_score=totals[1],
    )


def _one_sentence(X: Any, sentence: int) -> Any:
    n = len(X)
    if not -n <= sentence < n:
        raise ValueError(f"There is no sequence {sentence}: there are {n}, counted from 0.")
    sentence = range(n)[sentence]
    return X.take([sentence]) if isinstance(X, Columns) else [X[sentence]]


def _as_set(label: Any) -> Any:
    return label if isinstance(label, set | frozenset) else [label]


def _row(rows: Any, r: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and values of the features of a row."""
    if isinstance(rows, Dense):
        index = np.flatnonzero(rows.matrix[r])
        return index, rows.matrix[r, index]
    here = slice(rows.ptr[r], rows.ptr[r + 1])
    return rows.index[here], rows.value[here] if isinstance(rows, Sparse) else np.ones(here.stop - here.start)


def _emissions(model: Decoder, problem: Any, t: int, label: int) -> np.ndarray:
    """What each feature of token t adds to the score of a label."""
    index, value = _row(problem.rows, t)
    return model.coef_[label, index].astype(np.float64) * value


def _transition(model: Decoder, problem: Any, y: np.ndarray, t: int) -> float:
    """What going to the label of token t adds, over all orders; t = len(y): what the end adds."""
    if t == len(y):
        return float(model.stop_[y[-1]]) if problem.use_stop else 0.0
    begin = problem.n_labels
    total = 0.0
    for order in range(1, problem.order + 1):
        history: tuple[int, ...] = tuple(int(y[u]) if u >= 0 else begin for u in range(t - order, t))
        if problem.use_transitions and (problem.use_start or begin not in history):
            weights = model.higher_transitions(order)
            total += float(weights[history + (int(y[t]),)])
    return total


def _part_scores(model: Decoder, problem: Any, y: np.ndarray) -> Iterator[float]:
    for t in range(len(y)):
        yield from _emissions(model, problem, t, y[t]).tolist()
    for t in range(len(y) + 1):
        yield _transition(model, problem, y, t)


def compare(model, problem, a: np.ndarray, b: np.ndarray, token: int, first: int = 0):
    """Features of the token, transitions into and out of it, and what differs elsewhere.

    a and b are states of a sentence whose first token is row `first` of the problem.
    """
    labels = [str(state) for state in model.states_]
    index, values = _row(problem.rows, first + token)
    pairs = zip(*(_emissions(model, problem, first + token, y[token]).tolist() for y in (a, b)), strict=True)
    features = []
    for j, value, (chosen, other) in zip(index.tolist(), values.tolist(), pairs, strict=True):
        name = model.feature_name(j)
        features.append(Contribution(name if value == 1 else f"{name} ({value:g})", chosen, other))

    def path(y, t):
        """Labels that a transition is about: some before, and the one it goes to."""
        if t == len(y):
            return (y[-1], END)
        return tuple(y[u] if u >= 0 else BEGIN for u in range(max(t - problem.order, -1), t + 1))

    def shown(path):
        return " ".join(part if isinstance(part, str) else labels[part] for part in path)

    links: list[Contribution] = []
    elsewhere: list[Contribution] = []
    for t in range(len(a) + 1):
        if t < len(a) and t != token and a[t] != b[t]:
            chosen, other = (math.fsum(_emissions(model, problem, first + t, y[t]).tolist()) for y in (a, b))
            elsewhere.append(Contribution(f"features of token {t}: {labels[a[t]]} / {labels[b[t]]}", chosen, other))
        if path(a, t) == path(b, t):
            continue
        scores = (_transition(model, problem, y, t) for y in (a, b))
        part = Contribution(f"{shown(path(a, t))} / {shown(path(b, t))}", *scores)
        (links if token <= t <= token + problem.order else elsewhere).append(part)
    return features, links, elsewhere
