"""The losses: what each example pays, and what its subgradient is made of.

The family of Martins et al. 2010 (eq. 3), with temperature 1 / beta and cost weight gamma,

    L_i(w) = 1/beta log sum_y exp beta( s(y) - s(t_i) + gamma l_i(y) ),    dL_i = E[F(x_i, y)] - F(x_i, t_i),

holds the structured perceptron (beta = inf, gamma = 0), the structural SVM (inf, 1), the conditional random field (1, 0), the
softmax-margin CRF (1, 1) and everything between. For beta = inf the sum is a maximum and the expectation a best output.

Where example i is only partially labelled, its truth is a set G_i of acceptable outputs and takes the place of the target,

    L_i(w) = 1/beta log sum_y exp beta( s(y) + gamma l_i(y) )  -  1/beta log sum_{y in G_i} exp beta s(y),

with l_i(y) the cost against the set: the latent structural SVM for beta = inf (Yu and Joachims 2009), minus the marginal
likelihood for (1, 0) (Quattoni et al. 2007). It is a difference of convex functions, >= 0 as before, and has no dual bound.
For one acceptable output it is the loss above. Both references come from the structure (`kernels.complete` and
`kernels.expected_completion`).

Ramp losses, structured (Mancev 2015, Do et al. 2008, Gimpel and Smith 2012), are bounded: an output that the model refuses to
believe stops pulling at the weights. They are differences too, with the best *cost-diminished* output where the target was:

    L_i(w) = 1/beta log sum_y exp beta( s(y) + a l_i(y) )  -  max_y [ s(y) - b l_i(y) ].

Every such difference is ``convex(w) - max_y [...]``; its maximiser is what CCCP takes for its next target (`solvers.cccp`). The
soft ramp (Martins et al. 2010, footnote 1) is L(beta, gamma) - L(beta, 0), for beta = 1 a bound of the expected cost. It is
smooth. With b > 0 both of its halves are soft, and it is the likelihood of labels that came through a noisy channel.

Margin rescaling, all of the above, asks for a margin that grows with the cost. Slack rescaling (Tsochantaridis et al. 2005) asks
for the same margin of all outputs and pays for a violation in proportion to the cost, and Do et al. 2008 put both into one:

    L_i(w) = max_y Gamma(l_i(y)) (s(y) - s(t_i)) + l_i(y),    Gamma(l) = l^power,

margin rescaling for power 0, slack rescaling for power 1 (they call it margin rescaling; it is not). Its bounded form is
`RescaledRamp`.

All of these look at one rival, or weigh rivals by their probability. The summed error (Balamurugan et al.) makes every violation
count, L_i(w) = sum_y max(0, l_i(y) - w . dF_i(y)): see `Summed` for what that means where outputs cannot be listed.

A slack may also count by half its square, one for each example (`SquaredHinge`) or one for each output (`Summed`, squared): the
quadratic max and the quadratic summed error, as Balamurugan et al. call them.

A loss is a small record of parameters; what compiled loops see of it is in `in_loops`, `rescaled`, `slacks`, `squared` and
`summed`.

References
----------
P. Balamurugan, S. Shevade, T. Ravindra Babu. Efficient algorithms for linear summed error structural SVMs.
A. F. T. Martins et al. (2010). Aggressive online learning of structured classifiers. CMU-ML-10-109.
C. B. Do, Q. Le, C. H. Teo, O. Chapelle, A. Smola (2008). Tighter bounds for structured estimation. NIPS.
D. Mancev (2015). A sequential dual method for the structured ramp loss minimization. Facta Universitatis 30(1).
I. Tsochantaridis, T. Joachims, T. Hofmann, Y. Altun (2005). Large margin methods for structured and interdependent output
variables. JMLR 6.
K. Gimpel, N. A. Smith (2012). Structured ramp loss minimization for machine translation. NAACL.
C.-N. Yu, T. Joachims (2009). Learning structural SVMs with latent variables. ICML.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.spelling import Spelling
from partwise.engine.threads import in_threads
from partwise.losses.in_loops import Maximum, RampMaximum, RampSoftmax, SoftDifference, Softmax, workspace
from partwise.losses.loss import Loss, check_number
from partwise.losses.rescaled import RescaledDifference, RescaledMaximum, is_searched, unseen_pass
from partwise.losses.squared import SquaredHinge
from partwise.losses.summed import Summed


@dataclass(frozen=True)
class Family(Loss):
    """The loss L(beta, gamma) of Martins et al. 2010.

    Parameters
    ----------
    beta : float in (0, inf]
        Inverse temperature: 1 sums over outputs like a CRF, inf takes the best one like an SVM.
    gamma : float >= 0
        Weight of the cost: how large a margin is asked for.

    Examples
    --------
    >>> Family(1, 0).name, Family(float("inf"), 1).name, Family(3, 1).name
    ('crf', 'hinge', 'family(beta=3, gamma=1)')
    """

    beta: float
    gamma: float

    def __post_init__(self):
        check_number(self.beta, "beta", self, positive=True)
        check_number(self.gamma, "gamma", self)

    @property
    def convex(self) -> Family:
        return self

    @property
    def kernel(self) -> Maximum | Softmax:
        return Softmax(float(self.beta), float(self.gamma)) if self.is_smooth else Maximum(float(self.gamma))


@dataclass(frozen=True)
class Ramp(Loss):
    """The structured ramp loss ``max_y [s(y) + a l(y)] - max_y [s(y) - b l(y)]``: bounded, so that outliers lose their pull.

    Parameters
    ----------
    a : float >= 0
        Weight of the cost in the convex half, whose maximiser is pushed down.
    b : float >= 0
        Weight of the cost in the concave half, whose maximiser is pulled up; with b = 0 that is the prediction itself.
    beta : float in (0, inf]
        Inverse temperature of the convex half: a finite one turns the first maximum into ``1/beta log sum exp beta(.)``, which
        makes robust CRFs.

    Notes
    -----
    ``"ramp"`` is Ramp(1, 1) (Mancev 2015): twice the cost of its concave maximiser <= loss <= twice that of its convex one.
    ``"ramp_do"`` is Ramp(1, 0) (Do et al. 2008): cost of the prediction <= loss <= cost of the convex maximiser.
    ``"ramp_2"`` is Ramp(0, 1) (Gimpel and Smith 2012): it asks for no margin, so w = 0 minimises it, like the perceptron's loss;
    it makes sense for solvers that go on from good weights and stop early.
    Two oracle calls per example.

    Examples
    --------
    >>> Ramp(1, 1).name, Ramp(1, 0).name, Ramp(1, 0.5).name, Ramp(1, 1).convex.name
    ('ramp', 'ramp_do', 'ramp(b=0.5)', 'hinge')
    """

    a: float = 1.0
    b: float = 1.0
    beta: float = math.inf

    def __post_init__(self):
        check_number(self.a, "a", self)
        check_number(self.b, "b", self)
        check_number(self.beta, "beta", self, positive=True)

    @property
    def gamma(self) -> float:  # type: ignore[override]
        """Weight of the cost in the convex half."""
        return self.a

    @property
    def convex(self) -> Family:
        return Family(self.beta, self.a)

    @property
    def uses_cost(self) -> bool:
        return self.a > 0 or self.b > 0

    @property
    def kernel(self) -> RampMaximum | RampSoftmax:
        if self.is_smooth:
            return RampSoftmax(float(self.beta), float(self.a), float(self.b))
        return RampMaximum(float(self.a), float(self.b))

    @property
    def needs(self) -> tuple[Any, ...]:
        return (kernels.best, *super().needs) if self.is_smooth else super().needs


@dataclass(frozen=True)
class SoftRamp(Loss):
    """The soft ramp ``L(beta, gamma) - L(beta, -b)`` (Martins et al. 2010, footnote 1, for b = 0): smooth, bounded, not convex.

        L(w) = 1/beta log sum_y exp beta(s(y) + gamma l(y))  -  1/beta log sum_y exp beta(s(y) - b l(y))

    For gamma = 1, b = 0 it is at least the expected cost (the risk) under p(y) ~ exp(beta s(y)). It tends to Ramp(gamma, b) as
    beta grows.

    Parameters
    ----------
    beta : float > 0
        Inverse temperature.
    gamma : float >= 0
        Weight of the cost in the half that is pushed down.
    b : float >= 0
        Weight of the cost in the half that is pulled up; gamma or b is positive.

    Notes
    -----
    **Labels that are wrong.** Let the truth y be drawn by p(y) ~ exp s(y) and come to us as g, each mistake being the rarer the
    more it costs: p(g | y) ~ exp(-b l(y, g)). Then SoftRamp(1, 0, b) is minus the log-likelihood of g, but for a constant, where
    costs count wrong positions; with gamma = 1 a margin is asked for besides. Its gradient pulls at what the model takes for the
    truth, given both x and g. Of K values each, a share (K - 1) / (e^b + K - 1) of the positions is wrong.

    No single output is its target: solvers that follow gradients (L-BFGS, SGD, Pegasos) and NRBM minimise it as it is; those that
    step towards a target (DCA) cannot. Two calls of ``expected`` per example.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> solve(problem, SoftRamp(beta=2.0), C=1.0).loss.name
    'soft_ramp(beta=2)'
    """

    beta: float = 1.0
    gamma: float = 1.0
    b: float = 0.0
    uses_target = False

    def __post_init__(self):
        check_number(self.beta, "beta", self, positive=True)
        check_number(self.gamma, "gamma", self)
        check_number(self.b, "b", self)
        if not math.isfinite(self.beta) or self.gamma == self.b == 0:
            raise ValueError(f"{self!r} is no soft ramp: beta must be finite and gamma or b positive. Ramp(1, 0) is its limit.")

    @property
    def convex(self) -> Family:
        return Family(self.beta, self.gamma)

    @property
    def uses_cost(self) -> bool:
        return True

    @property
    def kernel(self) -> SoftDifference:
        return SoftDifference(float(self.beta), float(self.gamma), float(self.b))


@dataclass(frozen=True)
class Rescaled(Loss):
    """The convex bound ``max_y l(y)^power (s(y) - s(t)) + l(y)`` of Do et al. (2008, Lemma 1); ``"slack"`` is Rescaled(1).

    With power = 1 it is slack rescaling, max_y l(y) (1 - w . dF(y)): every wrong output has to stay one unit of score below the
    truth, whatever its cost, and the cost is what a violation is multiplied by. With power = 0 it is the hinge.

    Parameters
    ----------
    power : float >= 0
        Gamma(l) = l^power.

    Notes
    -----
    The cost of the prediction <= loss, for its target t = truth. Subgradient: Gamma(l(y~)) (F(y~) - F(t)). As a maximum of affine
    functions it has the certificates of the hinge.

    Score times cost is no sum over parts, so the oracle is not `best` but `kernels.best_at_costs`: O(K) on classes; on chains
    T + 1 times the work of Viterbi (Hamming; at 24 tokens and 23 labels a pass takes 8 times as long), for integer costs. Other
    costs and other structures are searched (`cost_search`): the piece that is found may not be the highest. Certificates then
    speak of what was found, and ``SolveResult.unseen`` of what may be missing.

    Where the target is not the truth y_i but costs something, as CCCP chooses it, the loss is what Lemma 2 becomes with its
    second half made linear (see `RescaledRamp`),

        max_y [Gamma(l(y)) (s(y) - s(y_i)) + l(y)]  -  Gamma(l(t)) (s(t) - s(y_i)),

    which for power = 0 is the hinge with that target. Where the truth is a set, t is its best completion.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> solve(problem, Rescaled(0.5), C=1.0).loss.name
    'rescaled(power=0.5)'
    """

    power: float = 1.0
    beta = math.inf
    gamma = 1.0

    def __post_init__(self):
        check_number(self.power, "power", self)

    @property
    def convex(self) -> Rescaled:
        return Rescaled(self.power)

    @property
    def kernel(self) -> Any:
        return RescaledMaximum(float(self.power))

    @property
    def needs(self) -> tuple[Any, ...]:
        return (kernels.best, kernels.add_cost, kernels.truth)

    def is_searched(self, problem: Any) -> bool:
        return bool(is_searched(problem))

    def unseen(self, problem: Any, C: Any, w: Any, n_jobs: int | None = None) -> float:
        """At most what the hull of (cost, score) leaves room for; one search over costs for each example that needs it."""
        if not self.is_searched(problem):
            return 0.0

        extra = np.zeros(kernels.n_examples(problem))

        def run(chunk):
            unseen_pass(problem, float(self.power), *chunk, w, workspace(problem, w.dtype), extra)

        in_threads(run, kernels.chunks(problem), n_jobs)
        return float(C @ extra)


@dataclass(frozen=True)
class RescaledRamp(Rescaled):
    """The bounded loss of Do et al. (2008, Lemma 2) for Gamma(l) = l^power, b(y) = s(y) - s(y_i) and y_i the truth.

        max_y [Gamma(l(y)) b(y) + l(y)]  -  max_y [Gamma(l(y)) b(y)]

    Parameters
    ----------
    power : float >= 0
        0 is ``"ramp_do"``, 1 the ramp of slack rescaling.

    Notes
    -----
    Cost of the prediction <= loss <= cost of the first maximiser y~. With t the second maximiser, a subgradient is
    Gamma(l(y~)) (F(y~) - F(y_i)) - Gamma(l(t)) (F(t) - F(y_i)). One call of `kernels.best_at_costs` finds both.

    **What CCCP minimises.** Algorithm 1 of Do et al. minimises, round by round, the bound of Lemma 1 with the target t,
    max_y Gamma(l(y)) (s(y) - s(t)) + l(y). For constant Gamma that is CCCP. Otherwise it is no bound of this loss: its pieces are
    those of the linearised loss less (Gamma(l(y)) - Gamma(l(t))) (s(t) - s(y_i)), so that it may lie below the loss, even where
    it was made, and minimising it may raise the objective: from 0.545 to 1.08 for one weight and three outputs with features 0,
    -2, 2 and costs 0, 4, 1, at power 1 and C = 0.5. (It still bounds the cost of the prediction, as Lemma 1 does for any target.)
    Here the second maximum is replaced by its tangent, as CCCP has it: that is `Rescaled` with the target t. It touches the loss
    where it is made and bounds it everywhere, so the objective never rises.

    The truth has to be one output: with a set of them the loss is no difference of convex functions, and partial labels are
    refused.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> solve(problem, RescaledRamp(1.0), C=1.0).loss.name
    'rescaled_ramp'
    """

    takes_sets = False

    @property
    def is_convex(self) -> bool:
        return False

    @property
    def kernel(self) -> Any:
        return RescaledDifference(float(self.power))

    def check(self, problem: Any) -> None:
        if kernels.is_partial(problem):
            raise ValueError(
                f"The loss {self.name!r} needs one true output per example, but {type(problem).__name__} is partially labelled. "
                "Use 'ramp_do', or its convex half, Rescaled(power)."
            )


LOSSES: dict[str, Loss] = {
    "perceptron": Family(math.inf, 0.0),
    "hinge": Family(math.inf, 1.0),
    "crf": Family(1.0, 0.0),
    "softmax_margin": Family(1.0, 1.0),
    "squared_hinge": SquaredHinge(1.0),
    "slack": Rescaled(1.0),
    "summed": Summed(1.0),
    "squared_summed": Summed(1.0, squared=True),
    "ramp": Ramp(1.0, 1.0),
    "ramp_do": Ramp(1.0, 0.0),
    "ramp_2": Ramp(0.0, 1.0),
    "soft_ramp": SoftRamp(1.0, 1.0),
}


#: the records, by the names they have in texts and in model files
LOSS_KINDS: dict[str, type[Loss]] = {
    "family": Family,
    "ramp": Ramp,
    "soft_ramp": SoftRamp,
    "rescaled": Rescaled,
    "rescaled_ramp": RescaledRamp,
    "squared_hinge": SquaredHinge,
    "summed": Summed,
}
SPELLING = Spelling("loss", LOSS_KINDS, LOSSES, "ramp(a=1, b=0)")


def get_loss(loss: str | Loss) -> Loss:
    """The loss of that name or spelling (see `partwise.engine.spelling`), or `loss` itself if it is one already.

    Examples
    --------
    >>> get_loss("crf"), get_loss("family(beta=1, gamma=3)"), get_loss("ramp(b=0)").name
    (Family(beta=1.0, gamma=0.0), Family(beta=1, gamma=3), 'ramp_do')
    """
    return loss if isinstance(loss, Loss) else SPELLING.read(loss)
