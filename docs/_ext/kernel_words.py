"""What the pages of `partwise.kernels` say of every kernel: its parameters, called the same everywhere, and an example; and those
of `partwise.objective`: an example.

All examples are about one tiny problem, so that kernels can be compared with each other.
"""

from __future__ import annotations

import inspect
from typing import Any

#: what every example begins with
PROBLEM = """>>> import numpy as np
>>> from partwise import kernels, multiclass_problem
>>> problem = multiclass_problem(np.array([[1.0, 0.0], [0.0, 1.0]]), [0, 1])
>>> w, theta, y = np.array([2.0, 1.0, 0.0, 1.0]), np.empty(2), np.empty(1, np.int32)"""
SCORED = "kernels.score(problem, 0, w, theta)"

PARAMETERS = {
    "problem": "NamedTuple\n    A packed problem.",
    "i": "int\n    Number of the example.",
    "w": "array (n_weights,)\n    The weights.",
    "theta": "array (n_parts,)\n    Scores of parts.",
    "c": "float\n    What is multiplied by it.",
    "y": "int32 array (length,)\n    An output.",
    "t": "int32 array (length,)\n    The output that margins are measured against; of `hold` and `forbid` a position.",
    "ys": "int32 array (k, length)\n    A row for each output.",
    "values": "array (k,)\n    A number for each output.",
    "costs": "array (k,)\n    The cost of each output.",
    "parts": "array (n_parts,)\n    Indicators or marginals of parts.",
    "code": "int\n    A value of a position.",
    "far": "float\n    More than any score.",
    "given": "array (length,)\n    A probability for each position.",
    "targets": "int32 array\n    Outputs end to end, one for each example.",
    "which": "array or slice\n    Numbers of examples; of `forget` a bool for each position.",
    "into": "array (n_weights,) or Accumulator\n    What is added to.",
    "n": "int\n    How many outputs there are.",
    "changes": "array (n,)\n    They sum to zero.",
    "scratch": "Accumulator\n    Cleared before and after.",
    "second": "Accumulator\n    Another.",
    "products": "array (n, n)\n    Written to.",
    "kernels": "kernels\n    One or more.",
    "who": "str\n    Who asks, for the message.",
    "lengths": "int64 array (n_examples,)\n    Written to.",
    "most": "int\n    At most so many.",
    "structure": "type\n    A class of packed problems.",
}

#: what a kernel is shown with, after `PROBLEM`; the last is an expression
EXAMPLES: dict[str, list[str]] = {
    "n_examples": ["kernels.n_examples(problem)"],
    "n_weights": ["kernels.n_weights(problem)"],
    "width": ["kernels.width(problem)"],
    "n_parts": ["kernels.n_parts(problem, 0)"],
    "length": ["kernels.length(problem, 0)"],
    "target": ["kernels.target(problem, 1).tolist()"],
    "score": [SCORED, "theta.tolist()"],
    "add_cost": [SCORED, "kernels.add_cost(problem, 0, 1.0, theta)", "theta.tolist()"],
    "value_of": [SCORED, "float(kernels.value_of(problem, 0, theta, np.array([1], np.int32)))"],
    "cost": ["float(kernels.cost(problem, 0, np.array([1], np.int32)))"],
    "best": [SCORED, "float(kernels.best(problem, 0, theta, y)), y.tolist()"],
    "kbest": [
        SCORED,
        "ys, values = np.empty((2, 1), np.int32), np.empty(2)",
        "kernels.kbest(problem, 0, theta, ys, values), ys.tolist(), values.tolist()",
    ],
    "max_marginals": [
        SCORED,
        "parts = np.empty(2)",
        "float(kernels.max_marginals(problem, 0, theta, parts)), parts.tolist()",
    ],
    "expected": [
        SCORED,
        "parts = np.empty(2)",
        "round(float(kernels.expected(problem, 0, theta, parts)), 3), parts.round(3).tolist()",
    ],
    "is_exact": ["kernels.is_exact(problem)"],
    "n_costs": ["kernels.n_costs(problem, 0)"],
    "best_at_costs": [
        SCORED,
        "ys, values, costs = np.empty((2, 1), np.int32), np.empty(2), np.empty(2)",
        "n = kernels.best_at_costs(problem, 0, theta, ys, values, costs)",
        "sorted(zip(costs[:n].tolist(), values[:n].tolist()))",
    ],
    "counts_costs": ["bool(kernels.counts_costs(problem, 0))"],
    "n_outputs": ["kernels.n_outputs(problem, 0)"],
    "all_outputs": ["ys = np.empty((2, 1), np.int32)", "kernels.all_outputs(problem, 0, ys), ys.tolist()"],
    "agreement": [
        "given = np.empty(1)",
        "kernels.agreement(problem, 0, np.array([0.7, 0.3]), given)",
        "given.tolist()",
    ],
    "n_values": ["kernels.n_values(problem)"],
    "outputs": ["[output.tolist() for output in kernels.outputs(problem, 0)]"],
    "truth": ["kernels.truth(problem, 1, y)", "y.tolist()"],
    "is_partial": ["kernels.is_partial(problem)"],
    "is_labelled": ["bool(kernels.is_labelled(problem, 0))"],
    "complete": [SCORED, "float(kernels.complete(problem, 0, theta, y)), y.tolist()"],
    "expected_completion": [
        SCORED,
        "parts = np.zeros(2)",
        "float(kernels.expected_completion(problem, 0, theta, 1.0, parts)), parts.tolist()",
    ],
    "with_targets": ["kernels.with_targets(problem, np.array([1, 1], np.int32)).targets.tolist()"],
    "take": ["kernels.n_examples(kernels.take(problem, np.array([1])))"],
    "indicate": ["parts = np.zeros(2)", "kernels.indicate(problem, 0, np.array([1], np.int32), 2.0, parts)", "parts.tolist()"],
    "add_features": [
        "into = np.zeros(4)",
        "kernels.add_features(problem, 0, np.array([1], np.int32), 1.0, into)",
        "into.tolist()",
    ],
    "add_parts": ["into = np.zeros(4)", "kernels.add_parts(problem, 0, np.array([0.7, 0.3]), 1.0, into)", "into.tolist()"],
    "difference": [
        "into, t = np.zeros(4), kernels.target(problem, 0)",
        "kernels.difference(problem, 0, t, np.array([1], np.int32), 1.0, into)",
        "into.tolist()",
    ],
    "move_mass": [
        "into, ys = np.zeros(4), np.array([[0], [1]], np.int32)",
        "kernels.move_mass(problem, 0, ys, np.array([0.5, -0.5]), 2, 1.0, into)",
        "into.tolist()",
    ],
    "require": ["kernels.require(problem, [kernels.best], 'A solver')"],
    "implements": ["kernels.implements(problem, kernels.best, kernels.hold)"],
    "measure": ["lengths = np.zeros(2, np.int64)", "kernels.measure(problem, 2, lengths), lengths.tolist()"],
    "extent": ["kernels.extent(problem)"],
    "check_weights": ["kernels.check_weights(problem, w)"],
    "chunks": ["kernels.chunks(problem)"],
    "sizes": ["starts, largest = kernels.sizes(problem)", "starts.tolist(), largest"],
    "total_parts": ["kernels.total_parts(problem)"],
}
#: likewise of `partwise.objective`, whose names come after this line
OBJECTIVE = "from partwise import LOSSES, objective as P"
OF_OBJECTIVE: dict[str, list[str]] = {
    "objective": ["float(P.objective(problem, LOSSES['hinge'], np.ones(2), w).primal)"],
    "Value": ["P.objective(problem, LOSSES['hinge'], np.ones(2), w).gradient.shape"],
    "is_convex": ["P.is_convex(problem, LOSSES['hinge']), P.is_convex(problem, LOSSES['ramp'])"],
    "losses_at": ["P.losses_at(problem, LOSSES['hinge'], w).tolist()"],
    "best_outputs": ["outputs, starts, scores = P.best_outputs(problem, w)", "outputs.tolist(), scores.tolist()"],
    "completions": ["P.completions(problem, w)[0].tolist()"],
    "mean_cost": ["P.mean_cost(problem, w)"],
    "likeliest_beta": ["P.likeliest_beta(problem, w) > 0.0"],
}
#: kernels that this problem does not have, or that need room of their own: the page of the tutorial shows them
ELSEWHERE = ("hold", "forbid", "restrict", "forget", "partially_labelled", "margin", "margins", "products", "gram")


def names_of_parameters(value: Any) -> list[str]:
    """Those of a kernel, a compiled loop or a function."""
    own = getattr(getattr(value, "kernel", None), "function", None) or getattr(value, "py_func", value)
    try:
        return list(inspect.signature(own).parameters)
    except (TypeError, ValueError):
        return []


def section(title: str, lines: list[str]) -> list[str]:
    """Of a docstring, as numpydoc has it."""
    return ["", title, "-" * len(title), *lines]


def words(name: str, value: Any) -> list[str]:
    """The sections of a kernel's docstring that are made here."""
    if name.startswith("objective."):
        lines = OF_OBJECTIVE.get(name.removeprefix("objective."))
        return section("Examples", [*PROBLEM.split("\n"), *shown([OBJECTIVE, *lines])]) if lines else []
    parameters = [line for one in names_of_parameters(value) for line in f"{one} : {PARAMETERS[one]}".split("\n")]
    found = section("Parameters", parameters) if parameters else []
    if name in EXAMPLES:
        found += section("Examples", [*PROBLEM.split("\n"), *shown(EXAMPLES[name])])
    return found


def shown(lines: list[str]) -> list[str]:
    """An example with what it prints, found out by running it."""
    scope: dict[str, Any] = {}
    exec("\n".join(line.removeprefix(">>> ") for line in PROBLEM.split("\n")), scope)
    for line in lines[:-1]:
        exec(line, scope)
    value = eval(lines[-1], scope)
    return [*(f">>> {line}" for line in lines), *([] if value is None else repr(value).split("\n"))]


def add(app: Any, what: str, full_name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Called by Sphinx for each docstring, before numpydoc reads it."""
    module, _, name = full_name.rpartition(".")
    if module in ("partwise.kernels", "partwise.objective"):
        name = name if module == "partwise.kernels" else f"objective.{name}"
        while lines and not lines[-1]:
            lines.pop()
        lines += [*words(name, value), ""]
