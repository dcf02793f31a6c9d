"""Files of factor graphs: the UAI format of the inference competitions, and AD3's own.

**UAI** (``MARKOV`` and ``BAYES``): variables with so many states each, factors with the variables they look at, and a table of
potentials >= 0 for each, the last variable running fastest. Scores are their logarithms, so that 0 is forbidden. Numbers may be
broken into lines anyhow. A factor over no variables adds to the score of everything; a variable with one state is in it.

**AD3** (``.fg``): blocks between empty lines, one graph each: the number of variables, that of factors, the score of each
variable's being true, one line each, then the factors: ``XOR 3 1 -2 3`` (a dash negates; variables count from 1), likewise
``OR``, ``ATMOSTONE``, ``OROUT`` (the last is true if and only if one of the others is), and ``PAIR 2 1 2 0.5``, the score of
both being true.

Every number is checked, and errors say which factor or line. What is too large for memory is refused before it is made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.files.text_source import read_text
from partwise.files.whole_file import whole_file
from partwise.structures.factor_graph.layout import DENSE
from partwise.structures.factor_graph.model import FactorGraph, Variables

MOST_ENTRIES = 100_000_000  # of all tables together
MOST = 1e300  # of a number in AD3's format, which may be an int of any length
MOST_STATES = 1_000_000  # of all variables together, beside one for each word: a variable need not have a table


@dataclass(frozen=True, eq=False)
class StoredGraph:
    """A graph from a file.

    Attributes
    ----------
    graph : FactorGraph
    variables : list of Variables or None
        In the order of the file; None for one that has a single state, and is not in the graph.
    constant : float
        What every output scores beside: of factors over no variables, or of variables with one state only.
    """

    graph: FactorGraph
    variables: list[Variables | None]
    constant: float = 0.0

    def states(self, answer: Any) -> list[int]:
        """The state of every variable of the file in an `Answer`."""
        return [0 if x is None else int(answer.of(x)) for x in self.variables]

    def marginals(self, beliefs: Any) -> list[list[float]]:
        """The probability of every state of every variable, of `Beliefs`."""
        return [[1.0] if x is None else beliefs.of(x).tolist() for x in self.variables]


def read_factor_graphs(source: Any) -> list[StoredGraph]:
    r"""The graphs of a file in one of both formats, told apart by its first word.

    Parameters
    ----------
    source : path or bytes

    Examples
    --------
    >>> stored = read_factor_graphs(b"MARKOV\n1\n2\n1\n1 0\n2\n1.0 3.0\n")[0]
    >>> len(read_factor_graphs(b"MARKOV\n1\n2\n1\n1 0\n2\n1.0 3.0\n"))
    1
    """
    text, name = read_text(source, "utf-8")
    first = text.split(None, 1)[0].upper() if text.strip() else ""
    if first in ("MARKOV", "BAYES"):
        return [read_uai(text, name)]
    if first.isdigit():
        return read_fg(text, name)
    raise ValueError(
        f"{name}: expected a factor graph: 'MARKOV' or 'BAYES' (UAI), or a number of variables (AD3). Got {first!r}."
    )


class Words:
    """The words of a text, one after another, as numbers."""

    def __init__(self, text: str, name: str):
        self.words, self.at, self.name = text.split(), 1, name

    def count(self, what: str, least: int = 0) -> int:
        """The next, an int."""
        word = self._next(what)
        if len(word) > 20 or not word.lstrip("+").isdecimal() or int(word) < least:
            raise ValueError(
                f"{self.name}: expected {what}, an int in the range [{least}, inf). Got {word[:40]!r} (word {self.at})."
            )
        return int(word)

    def numbers(self, n: int, what: str) -> np.ndarray:
        """The next n, finite and not negative."""
        some = self.words[self.at : self.at + n]
        if len(some) < n:
            raise ValueError(f"{self.name}: {what}: the file ends after {len(some)} of {n} numbers.")
        try:
            values = np.array(some, float)
        except ValueError as error:
            raise ValueError(f"{self.name}: {what}: {error}.") from None
        if not (np.isfinite(values) & (values >= 0.0)).all():
            bad = int(np.argmin(np.isfinite(values) & (values >= 0.0)))
            raise ValueError(f"{self.name}: {what}: potentials must be finite numbers >= 0. Got {some[bad]} at place {bad}.")
        self.at += n
        return values

    def _next(self, what: str) -> str:
        if self.at >= len(self.words):
            raise ValueError(f"{self.name}: the file ends where {what} should be.")
        self.at += 1
        return self.words[self.at - 1]


def read_uai(text: str, name: str = "the text") -> StoredGraph:
    """The graph of a text in the UAI format."""
    words = Words(text, name)
    sizes = [words.count(f"the states of variable {v}", 1) for v in range(words.count("the number of variables"))]
    if sum(sizes) > MOST_STATES + len(words.words):
        raise ValueError(f"{name}: the variables have {sum(sizes):,} states, more than {MOST_STATES:,} and the tables have.")
    scopes = []
    for f in range(words.count("the number of factors")):
        scope = [words.count(f"a variable of factor {f}") for _ in range(words.count(f"the number of variables of factor {f}"))]
        if any(v >= len(sizes) for v in scope) or len(set(scope)) < len(scope):
            raise ValueError(f"{name}: factor {f} is over {scope}: variables are 0 to {len(sizes) - 1}, each at most once.")
        scopes.append(scope)
    entries = [math.prod(sizes[v] for v in scope) for scope in scopes]
    if sum(entries) > MOST_ENTRIES:
        raise ValueError(f"{name}: the tables have {sum(entries):,} entries, more than {MOST_ENTRIES:,}.")
    graph = FactorGraph()
    variables = [graph.variables((), n) if n > 1 else None for n in sizes]
    constant = 0.0
    for f, (scope, n) in enumerate(zip(scopes, entries, strict=True)):
        if words.count(f"the number of entries of factor {f}") != n:
            raise ValueError(
                f"{name}: factor {f} is over variables of {[sizes[v] for v in scope]} states: {n} entries are expected."
            )
        with np.errstate(divide="ignore"):
            scores = np.log(words.numbers(n, f"factor {f}"))
        inside = [variables[v] for v in scope]
        some = [x for x in inside if x is not None]
        if not some:
            constant += float(scores[0])
        elif len(some) == 1:
            graph.unary(some[0], scores)
        else:
            graph.dense(some, scores.reshape([x.n_states for x in some]))
    return StoredGraph(graph, variables, constant)


def read_fg(text: str, name: str = "the text") -> list[StoredGraph]:
    """The graphs of a text in AD3's format."""
    found: list[StoredGraph] = []
    block: list[list[str]] = []
    first = 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip():
            first = number if not block else first
            block.append(line.split())
        elif block:
            found.append(_read_block(block, f"{name}, line", first))
            block = []
    return found


def _read_block(lines: list[list[str]], name: str, first: int) -> StoredGraph:
    def number(kind: Any, word: str, k: int, what: str) -> Any:
        try:
            value = kind(word)
        except ValueError:
            value = math.nan
        if not abs(value) < MOST:  # nan, too
            raise ValueError(f"{name} {first + k}: expected {what}. Got {word[:40]!r}.")
        return value

    if len(lines) < 2:
        raise ValueError(f"{name} {first}: a graph begins with the number of its variables and that of its factors.")
    n, n_factors = (number(int, lines[k][0], k, "a number of variables or factors") for k in (0, 1))
    if n < 0 or n_factors < 0 or len(lines) != 2 + n + n_factors:
        raise ValueError(
            f"{name} {first}: {n} variables and {n_factors} factors make {2 + n + n_factors} lines. Got {len(lines)}."
        )
    graph = FactorGraph()
    bits = graph.bits(n)
    if n:
        graph.unary(bits, [number(float, lines[2 + v][0], 2 + v, "the score of a variable") for v in range(n)])
    for k in range(2 + n, len(lines)):
        kind, *rest = lines[k]
        degree = number(int, rest[0], k, "the number of variables of a factor") if rest else 0
        places = [number(int, word, k, "the number of a variable") for word in rest[1 : 1 + degree]]
        more = rest[1 + degree :]
        if degree < 1 or len(places) < degree or any(not 0 < abs(v) <= n for v in places):
            raise ValueError(f"{name} {first + k}: {' '.join(lines[k])!r}: variables are 1 to {n}, as many as are announced.")
        if kind == "PAIR":
            if degree != 2 or len(more) != 1 or min(places) < 0:
                raise ValueError(f"{name} {first + k}: expected 'PAIR 2', two variables and a score. Got {' '.join(lines[k])!r}.")
            graph.pairwise(bits[places[0] - 1], bits[places[1] - 1], [[0.0, 0.0], [0.0, number(float, more[0], k, "a score")]])
            continue
        literals = [bits[v - 1].is_(1) if v > 0 else bits[-v - 1].is_(0) for v in places]
        if more or kind not in ("XOR", "OR", "ATMOSTONE", "OROUT") or (kind == "OROUT" and degree < 2):
            raise ValueError(f"{name} {first + k}: expected XOR, OR, ATMOSTONE, OROUT or PAIR. Got {' '.join(lines[k])!r}.")
        if kind == "OROUT":  # not out, if and only if none of the others
            graph.and_out([~literal for literal in literals[:-1]], ~literals[-1], name=f"line {first + k}")
        else:
            add = {"XOR": graph.xor, "OR": graph.or_, "ATMOSTONE": graph.at_most_one}[kind]
            add(literals, name=f"line {first + k}")
    return StoredGraph(graph, [bits[v] for v in range(n)])


def write_uai(path: Any, graph: FactorGraph) -> None:
    """Write a graph of scores (no features to be learnt, no hard factors) in the UAI format; potentials are exp(score).

    Parameters
    ----------
    path : path
    graph : FactorGraph

    Examples
    --------
    >>> from pathlib import Path
    >>> from partwise import FactorGraph
    >>> g = FactorGraph()
    >>> g.unary(g.variables(1, states=2), [[0.0, 1.0]])
    >>> write_uai("one.uai", g)
    >>> Path("one.uai").read_text().split()[0]
    'MARKOV'
    """
    told = graph.describe()
    sizes = [2 if n == 1 else int(n) for n in told.states]
    scopes: list[list[int]] = []
    tables: list[np.ndarray] = []
    for members, scored in told.unary:
        table = _scores(scored)
        for v, row in zip(members.tolist(), table, strict=True):
            scopes.append([v])
            tables.append(np.array([0.0, row[0]]) if told.states[v] == 1 else row)
    for factors in told.factors:
        if factors.kind != DENSE:
            raise ValueError(f"{factors.names[0]} is a hard factor, and the UAI format has tables only. Write it as a dense one.")
        scopes += factors.members.tolist()
        tables += list(_scores(factors.scored))
    lines = ["MARKOV", str(len(sizes)), " ".join(map(str, sizes)), str(len(scopes))]
    lines += [" ".join(map(str, [len(scope), *scope])) for scope in scopes]
    for table in tables:
        lines += ["", str(len(table)), " ".join(repr(float(value)) for value in np.exp(table))]
    with whole_file(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _scores(scored: Any) -> np.ndarray:
    if scored.given is None:
        raise ValueError("Scores that are learnt have no place in a file: give scores instead of features.")
    return np.asarray(scored.given)
