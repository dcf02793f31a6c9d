"""Solvers by name, and `solve`, the door to all of them."""

from __future__ import annotations

import dataclasses
from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.spelling import Spelling
from partwise.losses.penalty import check_penalty_weight, check_ratio
from partwise.losses.records import Loss, Rescaled, get_loss
from partwise.solvers.admm import ADMM
from partwise.solvers.arow import AROW
from partwise.solvers.base import Progress, Solver, State, Task
from partwise.solvers.bcfw import BCFW
from partwise.solvers.bmrm import BMRM, BMRMLS
from partwise.solvers.cccp import CCCP
from partwise.solvers.checks import check
from partwise.solvers.dca import DCA
from partwise.solvers.eg import EG
from partwise.solvers.kbest_mira import KBestMIRA
from partwise.solvers.kelley import Kelley
from partwise.solvers.lbfgs import LBFGS
from partwise.solvers.loop import run
from partwise.solvers.lse_cutting_plane import LSECuttingPlane
from partwise.solvers.mira import MIRA
from partwise.solvers.nrbm import NRBM
from partwise.solvers.nslack import NSlack
from partwise.solvers.ocas import OCAS
from partwise.solvers.oneslack import OneSlack
from partwise.solvers.out_of_fold import OutOfFold
from partwise.solvers.owlqn import OWLQN
from partwise.solvers.pegasos import Pegasos
from partwise.solvers.perceptron import Perceptron
from partwise.solvers.polyak import Polyak
from partwise.solvers.proximal import Proximal
from partwise.solvers.result import Record, SolveResult
from partwise.solvers.sdcd import SDCD
from partwise.solvers.sdm import SDM
from partwise.solvers.sgd import SGD

__all__ = [
    "CCCP",
    "SOLVERS",
    "OutOfFold",
    "Progress",
    "Record",
    "SolveResult",
    "Solver",
    "State",
    "Task",
    "can_minimise",
    "check",
    "get_solver",
    "make_task",
    "solve",
]

SOLVERS: dict[str, type[Solver]] = {
    s.name: s
    for s in (
        Perceptron,
        MIRA,
        KBestMIRA,
        AROW,
        SGD,
        Pegasos,
        DCA,
        LBFGS,
        Polyak,
        SDM,
        BCFW,
        EG,
        NSlack,
        OneSlack,
        Kelley,
        BMRM,
        BMRMLS,
        OCAS,
        Proximal,
        NRBM,
        OWLQN,
        ADMM,
        SDCD,
        LSECuttingPlane,
    )
}

SPELLING = Spelling(
    "solver", ChainMap({"cccp": CCCP, "out_of_fold": OutOfFold}, SOLVERS), example="pegasos(project=False)", others=("auto",)
)

LARGE = 5_000_000  # parts of all examples together: above that, "auto" takes a few good epochs rather than the optimum


def get_solver(
    solver: str | Solver, problem: Any = None, loss: Loss | None = None, l1_ratio: float = 0.0, weighted: bool = False
) -> Solver:
    """The solver of that name or spelling (`engine.spelling`), or `solver` itself if it is one already; "auto" picks one.

    Where the loss or the problem is not convex, a solver that needs it to be comes inside CCCP.
    """
    if isinstance(solver, Solver):
        return for_differences(solver, problem, loss)
    if isinstance(solver, str) and solver == "auto" and loss is not None:
        chosen = BMRMLS() if weighted and not l1_ratio else for_optimum(problem, loss, l1_ratio)
        return for_differences(chosen, problem, loss)
    return for_differences(SPELLING.read(solver), problem, loss)


def for_differences(solver: Solver, problem: Any, loss: Loss | None) -> Solver:
    """The solver itself, or CCCP with it inside where targets have to be chosen round by round.

    That is so for ramp losses, and for dual methods where the truth is a set of outputs. Soft ramps have no targets: their
    gradient is all there is.
    """
    if loss is None or solver.takes == "differences" or not loss.uses_target:
        return solver
    sets = solver.fixed_targets and problem is not None and kernels.is_partial(problem)
    return CCCP(solver) if sets or not loss.is_convex else solver


def can_minimise(loss: Loss, l1_ratio: float = 0.0, weighted: bool = False) -> list[str]:
    """Names of the solvers that take `loss` with that penalty, by themselves or inside CCCP."""
    able = {name: for_differences(make(), None, loss) for name, make in SOLVERS.items()}
    takes = {name: s for name, s in able.items() if s.accepts(loss) and (loss.is_convex or s.takes != "convex")}
    return [name for name, s in takes.items() if (s.sparse or not l1_ratio) and (s.weighted or not weighted)]


def for_optimum(problem: Any, loss: Loss, l1_ratio: float = 0.0) -> Solver:
    """What "auto" means to `solve`: a method with a certificate while the problem is small enough to run it to the end, else DCA.

    `solve` is asked for an optimum, estimators for a good model: what those take is in `partwise.solvers.defaults`.

    =================  ==============================  =================================
    loss               up to `LARGE` parts             more
    =================  ==============================  =================================
    beta finite        L-BFGS                          DCA
    beta = inf         SDM (gamma = 0: perceptron)     DCA (gamma = 0: perceptron)
    squared_hinge      SDM                             DCA
    rescaled           SDM                             SGD
    summed, squared    SDCD                            SDCD
    =================  ==============================  =================================

    Ramp losses get what their convex half gets, inside CCCP, but Pegasos instead of DCA, which learns wrong labels by heart. For
    partial labels it is DCA instead of SDM (rescaled losses: SGD): it completes them as it goes. With an L1 penalty it is OWL-QN
    or ADMM, always.
    """
    if l1_ratio > 0.0:
        return OWLQN() if loss.has_gradient else ADMM()
    if SDCD().accepts(loss):
        return SDCD()
    if not loss.is_smooth and loss.gamma == 0:
        return Perceptron()
    large = kernels.total_parts(problem) > LARGE
    if isinstance(loss, Rescaled) and (large or kernels.is_partial(problem)):
        return SGD()
    if large:
        return DCA() if loss.is_convex else Pegasos()
    if loss.is_smooth:
        return LBFGS()
    return DCA() if kernels.is_partial(problem) and loss.is_convex else SDM()


def make_task(
    problem, loss, C, sample_weight=None, seed=0, shuffle=True, dtype=np.float64, n_jobs=None, l1_ratio=0.0, penalty_weight=None
) -> Task:
    """Check the numbers and put the task together."""
    if not (isinstance(C, int | float | np.number) and 0 < C < np.inf):
        raise ValueError(f"The 'C' parameter must be a float in the range (0, inf). Got {C!r} instead.")
    n = kernels.n_examples(problem)
    if n == 0:
        raise ValueError("There are no training examples.")
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have one number per example, shape ({n},). Got {weight.shape}.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must be finite and non-negative.")
    kind, ratio = np.dtype(dtype).type, check_ratio(l1_ratio)
    each = None if penalty_weight is None else check_penalty_weight(penalty_weight, kernels.n_weights(problem))
    return Task(problem, get_loss(loss), C * weight, int(seed), bool(shuffle), kind, n_jobs, l1_ratio=ratio, penalty_weight=each)


def solve(
    problem: Any,
    loss: str | Loss = "hinge",
    solver: str | Solver = "auto",
    C: float = 1.0,
    *,
    l1_ratio: float = 0.0,
    penalty_weight: np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
    max_epochs: int | None = None,
    tol: float = 1e-3,
    seed: int = 0,
    shuffle: bool = True,
    dtype: Any = np.float64,
    n_jobs: int | None = None,
    validation: Any = None,
    patience: int = 5,
    callbacks: Sequence[Callable[[Record], Any]] = (),
    evaluate: str = "end",
    start: np.ndarray | None = None,
    resume: SolveResult | None = None,
) -> SolveResult:
    """Minimise ``r ||w||_1 + (1 - r)/2 ||w||^2 + C sum_i sample_weight_i L_i(w)`` over a packed problem, r being `l1_ratio`.

    Parameters
    ----------
    problem
        A packed problem of any structure, e.g. from `chain_problem`.
    loss : str or loss object
        ``"perceptron" "hinge" "crf" "softmax_margin" "squared_hinge" "slack" "summed" "squared_summed" "ramp" "ramp_do" "ramp_2"
        "soft_ramp"``, or ``Family(beta, gamma)``, ``Ramp(a, b)``, ``SoftRamp(beta, gamma)``, ``SquaredHinge(gamma)``,
        ``Rescaled(power)``, ``RescaledRamp(power)``, ``Summed(gamma, squared)``; these may be spelled as text, too:
        ``"family(beta=1, gamma=3)"``.
    solver : str or solver object
        A name from `SOLVERS`, one with parameters (``"pegasos(project=False)"`` or ``Pegasos(project=False)``), or ``"auto"``.
        Where the problem is not convex (ramp losses; partial labels, for dual methods), it solves the convex problems of `CCCP`.
    C : float
        Weight of the losses against the regulariser.
    l1_ratio : float in [0, 1]
        Share of the L1 norm in the regulariser: above 0 many weights become exactly zero, at 1 the model is sparsest. Solvers
        ``"owlqn"`` (smooth losses) and ``"admm"`` (max-margin losses) can, and ``"auto"`` takes them.
    penalty_weight : array (d,), optional
        lambda_j > 0 in the regulariser ``1/2 sum_j lambda_j w_j^2``, one for each weight of the packed problem; equal numbers
        for weights that belong together. Solvers ``"bmrm"`` and ``"bmrm_ls"`` can, and ``"auto"`` takes the latter. As long as
        the weights, it is an argument here and no parameter of a solver, which may be spelled and is kept in model files;
        estimators, which number their weights themselves, do not have it.
    max_epochs : int, optional
        Total number of epochs (those before a `resume` included); each solver has its default.
    tol : float
        Stop at a relative duality gap of `tol`, where the solver has a certificate. 0 runs all epochs.
    seed, shuffle
        Order of the examples: a permutation per epoch drawn from the seed, or always as given.
    dtype : float64 or float32
        Of the weights. Objective values are always float64.
    n_jobs : int, optional
        Threads for passes over all examples (batch solvers, certificates). Never changes the answer.
    validation : problem or function of the weights, optional
        Held-out data, or what to judge by instead of their mean cost (less is better): stop when it has not improved for
        `patience` epochs, and return the best model seen.
    callbacks : sequence of callables
        Each is called with a `Record` after every epoch; a true answer stops.
    evaluate : {"end", "epoch", "primal", "never"}
        When to compute primal and dual exactly (one more pass over the data each time); "primal": at the end, without the dual
        bound, which needs a gradient as large as the weights.
    start : array, optional
        Weights to start from.
    resume : SolveResult, optional
        Go on from a previous result, exactly as if it had not stopped.

    Examples
    --------
    >>> from partwise import chain_problem
    >>> problem = chain_problem(np.eye(4), lengths=[2, 2], gold=[0, 1, 1, 0])
    >>> result = solve(problem, "hinge", "sdm", C=1.0)
    >>> result.converged, bool(0 <= result.primal - result.dual <= 1e-3 * result.primal)
    (True, True)
    """
    task = make_task(problem, loss, C, sample_weight, seed, shuffle, dtype, n_jobs, l1_ratio, penalty_weight)
    if resume is not None and solver == "auto":
        solver = resume.solver
    chosen = get_solver(solver, problem, task.loss, task.l1_ratio, task.penalty_weight is not None)
    return run(
        chosen,
        task,
        max_epochs=max_epochs,
        tol=tol,
        validation=validation,
        patience=patience,
        callbacks=callbacks,
        evaluate=evaluate,
        start=start,
        resume=resume,
    )


def with_average(solver: Solver, average: bool | None) -> Solver:
    """The same solver with `average` set, if it (or the one inside) has that parameter and a choice was made."""
    if isinstance(solver, CCCP | OutOfFold):
        return dataclasses.replace(solver, solver=with_average(solver.solver, average))
    if average is None or "average" not in {f.name for f in dataclasses.fields(solver)}:
        return solver
    return dataclasses.replace(solver, **{"average": average})
