"""Factor graphs as a structure: an output is one state for every variable.

    s(y) = sum_v theta_v[y_v] + sum_f table_f[y_f],     theta and tables = given scores + sum of features times weights

What a graph is made of: `layout`. Weights are shared by whatever has the same name, from graph to graph (`description`).

Cost: the number of variables in the wrong state, each with its own weight. Parts: literals, then tables. For a bit only "true"
has a literal; where its truth is known it has a dense factor of its own, whose two parts carry the cost.

Where the state of a variable is not known, any is right (`PartialGraphProblem`): partial labels, and hidden variables. Labels may
be made of several states each (`hidden`): the truth and its cost are those of labels, and any state of a label is right.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.engine.ragged import taken
from partwise.structures.factor_graph.layout import FactorLayout, WrittenLayout, layout_like

NOT_PROVEN, NOT_CONVERGED = 1, 2  # in `status`, added up: the best output is not known to be the best; belief propagation


class Search(NamedTuple):
    """How oracles look for answers where there are cycles."""

    iterations: int = 1000  #: of AD3
    tol: float = 1e-6  #: residual at which AD3 stops
    exact: bool = False  #: branch and bound after AD3
    nodes: int = 10_000  #: of branch and bound
    sweeps: int = 100  #: of belief propagation
    change: float = 1e-6  #: of a message, at which it stops
    damping: float = 0.0  #: share of the old message that is kept
    residual: bool = False  #: schedule: by residuals instead of sweeps
    bound: bool = False  #: sums="trw": never below log Z, rather than Bethe's


class GraphProblem(NamedTuple):
    """N packed graphs; the arrays of `graphs` lie end to end, their entries counted from the beginning of each graph."""

    graphs: FactorLayout
    variables: np.ndarray  #: (N + 1,) first variable of each graph
    literals: np.ndarray  #: (N + 1,) first literal
    factors: np.ndarray  #: (N + 1,) first factor
    ports: np.ndarray  #: (N + 1,) first port
    members: np.ndarray  #: (N + 1,) first member
    parts: np.ndarray  #: (N + 1,) first part
    order: np.ndarray  #: factors of each graph, breadth first
    parents: np.ndarray  #: variable above each factor
    forest: np.ndarray  #: (N,) whether there are no cycles
    given: np.ndarray  #: (parts,) scores that are not learnt
    features: np.ndarray  #: (variables + factors + 1,) first feature of each; graph by graph, variables first
    start: np.ndarray  #: of each feature, the weight of the first entry of the table that it scores
    value: np.ndarray  #: of each feature
    tie: np.ndarray  #: of each feature, where in `ties` the weights of its table's entries are, or -1: one after another
    ties: np.ndarray  #: number t of the weight of an entry, -1 for none; -2 - t: the weight with the other sign
    gold: np.ndarray  #: (variables,) int32 label, -1: not known; state s is one of label s // hidden
    targets: np.ndarray  #: (variables,) int32
    weight: np.ndarray  #: (variables,) cost of a wrong state
    cost_at: np.ndarray  #: (variables,) first of the parts that carry it
    status: np.ndarray  #: (N,) int8, written by the oracles
    n_weights: int
    width: int
    hidden: int  #: states of each label, 1: labels are states
    search: Search


@kernels.partially_labelled
class PartialGraphProblem(GraphProblem):
    """The same where some state is not known, or labels have several."""


class WrittenGraphProblem(GraphProblem):
    """The same where some factor is an object in Python: everything is interpreted."""

    interpreted_only = True


@kernels.partially_labelled
class PartialWrittenGraphProblem(PartialGraphProblem):
    """Both."""

    interpreted_only = True


def problem_class(graphs: FactorLayout, partial: bool) -> type[GraphProblem]:
    """The class of a problem of these graphs; `partial`: some truth is not one output."""
    if isinstance(graphs, WrittenLayout):
        return PartialWrittenGraphProblem if partial else WrittenGraphProblem
    return PartialGraphProblem if partial else GraphProblem


@helper
def view(problem, i):
    """The layout of graph i."""
    g = problem.graphs
    v, w = problem.variables[i], problem.variables[i + 1]
    f, e = problem.factors[i], problem.factors[i + 1]
    p, q = problem.ports[i], problem.ports[i + 1]
    return layout_like(
        g,
        g.states[v:w],
        g.first[v + i : w + i + 1],
        g.owner[problem.literals[i] : problem.literals[i + 1]],
        g.kind[f:e],
        g.ports[f + i : e + i + 1],
        g.literal[p:q],
        g.mark[p:q],
        g.slots[f + i : e + i + 1],
        g.members[problem.members[i] : problem.members[i + 1]],
        g.table[f + i : e + i + 1],
        g.number[f:e],
    )


SUMS = ("bethe", "trw")
OPTIONS = (*(name for name in Search._fields if name != "bound"), "sums")
DAMPING = 0.3  # of tree-reweighted messages, which seldom converge without; `messages.more_damped` adds to it


def make_search(options: dict[str, Any], **defaults: Any) -> Search:
    """The options, if they make sense: those of `Search`, with ``sums="bethe"`` or ``"trw"`` for its `bound`."""
    if unknown := sorted(set(options) - set(OPTIONS)):
        raise TypeError(f"Unknown options {unknown}; there are {', '.join(OPTIONS)}.")
    sums = options.get("sums", "bethe")
    if sums not in SUMS:
        raise ValueError(f"The 'sums' option must be one of {', '.join(SUMS)}. Got {sums!r} instead.")
    given = {name: value for name, value in options.items() if name != "sums"}
    how = Search(**{**defaults, **({"damping": DAMPING} if sums == "trw" else {}), **given, "bound": sums == "trw"})
    for name in ("iterations", "nodes", "sweeps"):
        value = getattr(how, name)
        if not (isinstance(value, int | np.integer) and value >= 1):
            raise ValueError(f"The {name!r} option must be an int in the range [1, inf). Got {value!r} instead.")
    if not 0.0 <= how.damping < 1.0:
        raise ValueError(f"The 'damping' option must be a float in the range [0, 1). Got {how.damping!r} instead.")
    return how


@kernels.take.implements(GraphProblem)
def take(problem: GraphProblem, which: np.ndarray) -> GraphProblem:
    """The graphs numbered `which`, as a problem of their own."""
    which = which if isinstance(which, slice) else np.asarray(which, np.int64)
    g, number = problem.graphs, np.arange(len(problem.variables))
    variables, v = taken(problem.variables, which)
    literals, owners = taken(problem.literals, which)
    factors, f = taken(problem.factors, which)
    ports, p = taken(problem.ports, which)
    members, m = taken(problem.members, which)
    parts, z = taken(problem.parts, which)
    v_ends, f_ends = (taken(starts + number, which)[1] for starts in (problem.variables, problem.factors))  # one more each
    features, kept = taken(problem.features, taken(problem.variables + problem.factors, which)[1])
    gold = problem.gold[v]
    partial = kernels.is_partial(problem) and (problem.hidden > 1 or bool((gold < 0).any()))
    return problem_class(g, partial)(*problem)._replace(
        graphs=g._replace(
            states=g.states[v],
            first=g.first[v_ends],
            owner=g.owner[owners],
            kind=g.kind[f],
            ports=g.ports[f_ends],
            literal=g.literal[p],
            mark=g.mark[p],
            slots=g.slots[f_ends],
            members=g.members[m],
            table=g.table[f_ends],
            number=g.number[f],
        ),
        variables=variables,
        literals=literals,
        factors=factors,
        ports=ports,
        members=members,
        parts=parts,
        order=problem.order[f],
        parents=problem.parents[f],
        forest=problem.forest[which],
        given=problem.given[z],
        features=features,
        start=problem.start[kept],
        value=problem.value[kept],
        tie=problem.tie[kept],
        gold=gold,
        targets=problem.targets[v],
        weight=problem.weight[v],
        cost_at=problem.cost_at[v],
        status=problem.status[which],
    )
