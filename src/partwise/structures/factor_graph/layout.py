"""What a factor graph is made of, without its scores: what the oracles of `factors`, `messages` and `ad3` see.

A **variable** has states 0 .. k - 1. Its *literals* "the variable is in state s" are numbered one after another, variable by
variable; a *bit*, a variable of two states, has one literal, "it is true". A **factor** looks at literals through its *ports*:
a configuration of the factor turns some ports on. Hard factors say which configurations there are; soft ones also have a table
of scores. The score of an output is

    s(y) = sum over literals on of theta[literal] + sum over factors of table[configuration of y],     -inf if a factor forbids it

and theta holds first the literals, then the tables, one after another.

| kind | ports | configurations |
|---|---|---|
| DENSE | all literals of its variables | all states of its variables, the last one running fastest; each has its score |
| XOR | any literals | exactly one is on |
| AT_MOST_ONE | any literals | none or one |
| OR | any literals | at least one |
| AND_OUT | conditions, last the outcome | the outcome is on if and only if all conditions are |
| IMPLY | conditions, last the outcome | if all conditions are on, so is the outcome |
| BUDGET | any literals | at most `number` |
| KNAPSACK | any literals | what they cost, whole numbers, is at most `number` in sum |
| ONE_OF_K | all literals of a variable of k states, then k others | the one on among the k others is the variable's state |
| TREE | arcs h -> m of a sentence; with WHOLE, all literals of one variable for each word, its head | those on are a tree |
| HEAD | all literals of a word's head, then arcs out of it, left then right, from near to far | any; table: see `head` |
| WRITTEN | any literals | what an object in Python says, with a score for each: see `written` |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise.engine.compilation import helper, kernel

DENSE, XOR, AT_MOST_ONE, OR, AND_OUT, IMPLY, BUDGET, ONE_OF_K, TREE, HEAD, KNAPSACK, WRITTEN = range(12)
NAMES = ("dense", "xor", "at_most_one", "or", "and_out", "imply", "budget", "one_of_k", "tree", "head", "knapsack", "factor")
SINGLE_ROOT, PROJECTIVE, WHOLE = 1, 2, 4  # kinds of trees; WHOLE: each word's head is a variable, whose states are its arcs


class FactorLayout(NamedTuple):
    """One factor graph: V variables, F factors, P ports. Offsets have one entry more than things."""

    states: np.ndarray  #: (V,) number of states; 1 for a bit, which has one literal
    first: np.ndarray  #: (V + 1,) first literal of each variable
    owner: np.ndarray  #: (literals,) variable of each literal
    kind: np.ndarray  #: (F,)
    ports: np.ndarray  #: (F + 1,) first port of each factor
    literal: np.ndarray  #: (P,)
    mark: np.ndarray  #: (P,) of a tree, the arc: (m - 1) (n + 1) + h; of other hard factors, 1 for "not this literal"
    slots: np.ndarray  #: (F + 1,) first entry of each factor in `members`
    members: np.ndarray  #: its variables; of a tree, (words, its kind); of a head, arcs (in, left, right);
    #: of a knapsack, what its ports cost
    table: np.ndarray  #: (F + 1,) first part of each factor's table
    number: np.ndarray  #: (F,) of a budget or a knapsack; of a written factor, its object


class TreeLayout(FactorLayout):
    """The same where some factor is a TREE or a HEAD: what those need is compiled for such graphs only, half of all there is."""


class WrittenLayout(TreeLayout):
    """The same where some factor is an object in Python: such graphs are searched by the interpreter."""

    interpreted_only = True
    objects: tuple[Any, ...] = ()

    def _replace(self, **changes: Any) -> WrittenLayout:  # type: ignore[override]
        return with_objects(super()._replace(**changes), self.objects)


def with_objects(graph: Any, objects: tuple[Any, ...]) -> Any:
    """The layout, knowing its written factors."""
    graph.objects = objects
    return graph


def layout_for(kinds: np.ndarray) -> type[FactorLayout]:
    """The class of a layout with factors of these kinds."""
    if (kinds == WRITTEN).any():
        return WrittenLayout
    return TreeLayout if np.isin(kinds, (TREE, HEAD)).any() else FactorLayout


@kernel
def layout_like(graphs, states, first, owner, kind, ports, literal, mark, slots, members, table, number):
    """A layout of the same class."""


@layout_like.implements(FactorLayout)
def _(graphs, states, first, owner, kind, ports, literal, mark, slots, members, table, number):
    return FactorLayout(states, first, owner, kind, ports, literal, mark, slots, members, table, number)


@layout_like.implements(TreeLayout)
def _(graphs, states, first, owner, kind, ports, literal, mark, slots, members, table, number):
    return TreeLayout(states, first, owner, kind, ports, literal, mark, slots, members, table, number)


@layout_like.implements(WrittenLayout)
def _(graphs, states, first, owner, kind, ports, literal, mark, slots, members, table, number):
    layout = WrittenLayout(states, first, owner, kind, ports, literal, mark, slots, members, table, number)
    return with_objects(layout, graphs.objects)


@helper
def n_literals(graph):
    """How many literals there are."""
    return graph.first[len(graph.states)]


@helper
def choices(graph, v):
    """Number of states of a variable."""
    return 2 if graph.states[v] == 1 else graph.states[v]


@helper
def in_block(graph, f, p):
    """Whether port p of factor f is one of all literals of a variable, rather than a literal on its own."""
    kind, a = graph.kind[f], graph.ports[f]
    if kind == TREE:
        return (graph.members[graph.slots[f] + 1] & WHOLE) > 0
    if kind == HEAD:
        return p < graph.members[graph.slots[f]]
    return kind == DENSE or (kind == ONE_OF_K and p < (graph.ports[f + 1] - a) // 2)


@helper
def write_states(graph, on, y):
    """The state of every variable from which literals are on (numbers: the largest)."""
    for v in range(len(graph.states)):
        a, n = graph.first[v], graph.states[v]
        if n == 1:
            y[v] = 1 if on[a] > 0.5 else 0
        else:
            k = 0
            for s in range(1, n):
                if on[a + s] > on[a + k]:
                    k = s
            y[v] = k


@helper
def is_on(graph, literal, y):
    """Whether a literal holds in an output."""
    v = graph.owner[literal]
    return y[v] == (1 if graph.states[v] == 1 else literal - graph.first[v])


@helper
def hold_state(graph, theta, v, s, far):
    """Make every other state of a variable impossible; of a bit that must be true, worth `far` less. Returns what was added."""
    a, n = graph.first[v], graph.states[v]
    if n == 1:
        theta[a] = theta[a] + far if s else -np.inf
        return far if s else 0.0
    for k in range(n):
        if k != s:
            theta[a + k] = -np.inf
    return 0.0


@helper
def entry_of(graph, f, y):
    """Which entry of the table of a dense factor an output has."""
    k = 0
    for j in range(graph.slots[f], graph.slots[f + 1]):
        v = graph.members[j]
        k = k * choices(graph, v) + y[v]
    return k
