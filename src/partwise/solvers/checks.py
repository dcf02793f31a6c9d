"""What cannot work is refused before any work: losses, penalties, structures and sizes that a solver does not take."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.memory import require_memory
from partwise.losses.records import LOSSES, Loss
from partwise.objective import completions
from partwise.solvers.base import Solver, Task
from partwise.solvers.result import SolveResult


def check(solver: Solver, problem: Any, loss: Loss, l1_ratio: float = 0.0, weighted: bool = False) -> None:
    """Raise unless `solver` can minimise `loss` with that penalty and `problem` has the kernels both need."""
    if weighted and not solver.weighted:
        from partwise.solvers import can_minimise

        others = ", ".join(can_minimise(loss, l1_ratio, weighted=True)) or "none for this loss and penalty"
        raise ValueError(
            f"Solver {solver.name!r} has one penalty for all weights, and takes no penalty_weight. Solvers that can: {others}. "
            "Or divide each feature by the root of its penalty_weight, and so the weights that are found."
        )
    if l1_ratio > 0.0 and not solver.sparse:
        from partwise.solvers import can_minimise

        others = ", ".join(can_minimise(loss, l1_ratio)) or "none for this loss"
        raise ValueError(
            f"Solver {solver.name!r} takes no L1 penalty (l1_ratio={l1_ratio:g}) with the loss {loss.name!r}. "
            f"Solvers that can: {others}. Or set l1_ratio=0."
        )
    if not solver.accepts(loss) or (solver.takes == "convex" and not loss.is_convex):
        from partwise.solvers import can_minimise

        raise ValueError(
            f"Solver {solver.name!r} minimises {solver.accepted}, not the loss {loss.name!r} "
            f"(beta={loss.beta:g}, gamma={loss.gamma:g}). Solvers that can: {', '.join(can_minimise(loss))}. "
            f"Losses that {solver.name!r} can: {', '.join(n for n, f in LOSSES.items() if solver.name in can_minimise(f))}."
        )
    loss.check(problem)
    if solver.fixed_targets and kernels.is_partial(problem):
        from partwise.solvers import SOLVERS

        able = [name for name, make in SOLVERS.items() if make().accepts(loss) and not make.fixed_targets]
        raise ValueError(
            f"Solver {solver.name!r} works in the dual, with one target per example, but the problem is partially labelled: the "
            f"truth of some examples is a set of outputs, and the objective is not convex. Put it into CCCP, as `solve` does, or "
            f"take one of: {', '.join(able)}."
        )
    basic = (kernels.score, kernels.value_of, kernels.add_features, kernels.n_weights, kernels.n_parts, kernels.target)
    who = f"The loss {loss.name!r}"
    if loss.found_by and solver.name not in loss.found_by:
        who += f" (with any solver but {' and '.join(map(repr, loss.found_by))}, which search outputs instead of listing them)"
    kernels.require(problem, (*basic, *solver.needs_of(loss)), who)
    kernels.require(problem, solver.needs, f"The solver {solver.name!r}")
    solver.check_size(problem)


def size_of(problem: Any) -> tuple[int, int, int]:
    """Examples, weights, parts: what a state can only be resumed with."""
    return int(kernels.n_examples(problem)), int(kernels.n_weights(problem)), kernels.total_parts(problem)


def check_sizes(task: Task, validation: Any, start: np.ndarray | None, resume: SolveResult | None) -> None:
    """Compiled loops do not check indices: refuse weights, states and held-out data of another problem."""
    d = kernels.n_weights(task.problem)
    require_memory(
        3.0 * np.dtype(task.dtype).itemsize * d, task.n_jobs, f"Learning {d:,} weights", "Number features from 1 on, without gaps"
    )
    if start is not None and np.shape(start) != (d,):
        raise ValueError(f"start must have one number per weight, shape ({d},). Got shape {np.shape(start)}.")
    if validation is not None and not callable(validation) and kernels.n_weights(validation) != d:
        raise ValueError(f"The validation problem has {kernels.n_weights(validation)} weights, the training problem {d}.")
    if resume is not None and (resume.state is None or resume.size != size_of(task.problem)):
        raise ValueError(
            "This result cannot be resumed: it "
            + ("was stored without its state." if resume.state is None else "belongs to a problem of another size.")
            + " Pass start=result.w to start from its weights."
        )


def check_completions(task: Task) -> None:
    """Raise, naming the example, if the labels of a partially labelled one cannot be completed."""
    if kernels.is_partial(task.problem):
        values = completions(task.problem, np.zeros(kernels.n_weights(task.problem), task.dtype), task.n_jobs)[2]
        if values.min(initial=0.0) == -np.inf:
            raise ValueError(
                f"No output of example {int(np.argmin(values))} agrees with its partial labels and obeys the constraints."
            )
