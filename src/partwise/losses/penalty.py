"""The elastic net: the penalty, its conjugate, and lower bounds of the optimum that it leaves.

    P(w) = Omega(w) + R(w),    Omega(w) = r ||w||_1 + (1 - r)/2 ||w||^2,    R(w) = sum_i C_i L_i(w)

r = 0 is the usual penalty; r = 1 makes most weights exactly zero (Zhu, Xing and Zhang 2009; Balamurugan et al., eq. II.5).

**The dual.** With distributions q_i over the outputs of the examples, v(q) = sum_i C_i E_qi[F(x_i, t_i) - F(x_i, y)] and H the
entropy, a loss of the family L(beta, gamma) is a maximum, R(w) = max_q E(q) - w . v(q), so that

    min P = max_q D(q) = E(q) - Omega*(v(q)),                    E(q) = sum_i C_i (gamma E_qi[l_i] + H(q_i) / beta),
    Omega*(v) = 1/(2 (1 - r)) sum_j max(|v_j| - r, 0)^2          (r = 1: zero if all |v_j| <= 1, else infinite).

Weights w suggest q_i = p_i(. | w), for which v = -grad R(w) and E(q) = R(w) + w . v, all known from the gradient. But for r = 1
that point is nearly never feasible. Therefore it is mixed with the targets, q_s = s q + (1 - s) [y = t_i], 0 <= s <= 1: as the
target differs in nothing from itself, v(q_s) = s v, and s <= 1 / max_j |v_j| is feasible. By concavity E(q_s) >= s E(q). For
finite beta the entropy of the mixture is known too, from p_i = exp(-beta L_i(w)), the probability of the target, alone:

    E(q_s) = s E(q) + 1/beta sum_i C_i ( s p_i log p_i - s m_i log s - (1 - s m_i) log(1 - s m_i) ),    m_i = 1 - p_i.

(For a target that costs something, as CCCP may choose, p_i is larger than that, but then the right side is a lower bound: its
derivative by log p_i is at least -(1 - s), and the cost enters E(q_s) with the weight 1 - s.)

D(q_s) is concave in s: `mixed_bound` finds its maximum, for any r. At the optimum s = 1, and the bound is tight. How fast it gets
there depends on r: for r = 1 the gap is of the order of the gradient's error, for r < 1 of its square divided by 1 - r. Losses
outside the family do without the entropy: R >= 0 is all that s E(q) needs.

**A penalty of its own for each weight**, Omega(w) = 1/2 sum_j lambda_j w_j^2 with lambda_j > 0 (r = 0 only): the same problem as
r = 0 in the variables u_j = sqrt(lambda_j) w_j, that is with features x_j / sqrt(lambda_j). Its conjugate is
Omega*(v) = 1/2 sum_j v_j^2 / lambda_j. Blocks of weights that deserve different penalties (transitions and emissions, a bias)
are vectors that are constant on each block.

References
----------
J. Zhu, E. P. Xing, B. Zhang (2009). Primal sparse max-margin Markov networks. KDD.
P. Balamurugan, S. Shevade, T. Ravindra Babu. Efficient algorithms for linear summed error structural SVMs. Equation II.5.
H. Zou, T. Hastie (2005). Regularization and variable selection via the elastic net. JRSS B 67.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise.engine.compilation import compiled_loop

HALVINGS = 40  # of [0, 1], when the best mixture is looked for
BLOCK = 1 << 13  # weights in float64: above 10,000 OpenBLAS wakes other threads, which wait for each other on a busy machine


def check_ratio(value: Any, who: str = "") -> float:
    """`value` as a float, if it is one in [0, 1]."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (number and 0.0 <= value <= 1.0):
        raise ValueError(f"The 'l1_ratio' parameter{who} must be a float in the range [0, 1]. Got {value!r} instead.")
    return float(value)


def check_penalty_weight(value: Any, d: int) -> np.ndarray | None:
    """`value` as an array of d positive numbers, or None."""
    if value is None:
        return None
    try:
        weight = np.array(value, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"penalty_weight must be an array of numbers, one per weight, or None. Got {value!r}.") from None
    if weight.shape != (d,):
        raise ValueError(f"penalty_weight must have one number per weight, shape ({d},). Got shape {weight.shape}.")
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight > 0.0)))
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(
            f"penalty_weight must be finite and positive: a weight without a penalty has no lower bound. Got {weight[at]} for "
            f"weight {at}."
        )
    return weight


def inner(u: np.ndarray, v: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The inner product of the penalty 1/2 (w, w): u . v, or sum_j weight_j u_j v_j."""
    return float(np.dot(u, v)) if weight is None else float(np.dot(u * weight, v))


def squared_length(w: Any) -> float:
    """||w||^2 of an array or of lists of what is not zero, summed in float64 without a copy of w."""
    if not isinstance(w, np.ndarray):
        return squared_length(w.values) + squared_length(w.rest)
    if w.dtype == np.float64:
        return float(w @ w)
    total = 0.0
    for first in range(0, len(w), BLOCK):
        some = w[first : first + BLOCK].astype(np.float64)
        total += float(some @ some)
    return total


def penalty(w: np.ndarray, l1_ratio: float = 0.0, weight: np.ndarray | None = None) -> float:
    """Omega(w)."""
    smooth = 0.5 * (1.0 - l1_ratio) * (squared_length(w) if weight is None else inner(w, w, weight))
    return smooth + l1_ratio * float(np.abs(w).sum(dtype=np.float64)) if l1_ratio else smooth


@compiled_loop
def add_penalty(gradient, w, l1_ratio, block, first, last):
    """gradient += (1 - r) w for first <= j < last, `gradient` being that of R.

    Returns ||w||_1, ||w||^2, w . grad R and max_j |grad_j R| there; sums block by block, as in ``objective.add_weights``.
    """
    norm, square, along, largest = 0.0, 0.0, 0.0, 0.0
    for start in range(first, last, block):
        norm_sum, square_sum, along_sum, stop = 0.0, 0.0, 0.0, min(start + block, last)
        for j in range(start, stop):
            v, g = float(w[j]), gradient[j]
            norm_sum += abs(v)
            square_sum += v * v
            along_sum += v * g
            largest = max(largest, abs(g))
        for j in range(start, stop):
            gradient[j] += (1.0 - l1_ratio) * float(w[j])
        norm += norm_sum
        square += square_sum
        along += along_sum
    return norm, square, along, largest


@compiled_loop
def above(gradient, w, l1_ratio, first, last):
    """Those |grad_j R| that are larger than r, from the gradient after `add_penalty`, for first <= j < last."""
    n = 0
    for j in range(first, last):
        if abs(gradient[j] - (1.0 - l1_ratio) * float(w[j])) > l1_ratio:
            n += 1
    found, n = np.empty(n), 0
    for j in range(first, last):
        v = abs(gradient[j] - (1.0 - l1_ratio) * float(w[j]))
        if v > l1_ratio and n < len(found):
            found[n] = v
            n += 1
    return found


class Entropy(NamedTuple):
    """What the entropy of a mixture with the targets needs: C_i / beta, and beta L_i(w) = -log p_i."""

    weight: np.ndarray
    surprise: np.ndarray

    def of_mixture(self, s: float) -> float:
        """What mixing adds to s E(q)."""
        p, m = np.exp(-self.surprise), -np.expm1(-self.surprise)
        rest = 1.0 - s * m
        logs = np.log(rest, out=np.zeros_like(rest), where=rest > 0.0)
        return float(self.weight @ (-s * p * self.surprise - rest * logs)) - s * _log(s) * float(self.weight @ m)

    def slope(self, s: float) -> float:
        """Its derivative."""
        p, m = np.exp(-self.surprise), -np.expm1(-self.surprise)
        logs = -self.surprise if s == 1.0 else np.log1p(-s * m)
        return float(self.weight @ (m * logs - p * self.surprise)) - _log(s) * float(self.weight @ m)


def _log(s: float) -> float:
    return float(np.log(s)) if s > 0.0 else 0.0


def mixed_bound(value: float, entropy: Entropy | None, large: np.ndarray, largest: float, l1_ratio: float) -> float:
    """The highest D(q_s) over the mixtures of q with the targets (see the module).

    Parameters
    ----------
    value : float
        E(q).
    entropy : Entropy or None
        None: E(q_s) >= s E(q) is all that is known.
    large : array
        Those |v_j(q)| that are larger than r; for r = 1 they are not looked at.
    largest : float
        max_j |v_j(q)|.
    l1_ratio : float
        r.
    """
    r = l1_ratio
    top = min(1.0, 1.0 / largest) if r == 1.0 and largest > 0.0 else 1.0

    def beyond(s: float) -> np.ndarray:
        return np.maximum(s * large - r, 0.0)

    def slope(s: float) -> float:
        quadratic = float(large @ beyond(s)) / (1.0 - r) if r < 1.0 else 0.0
        return value + (entropy.slope(s) if entropy else 0.0) - quadratic

    low, high = 0.0, top
    if slope(top) >= 0.0:
        low = top
    for _ in range(HALVINGS if low < top else 0):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) >= 0.0 else (low, middle)
    quadratic = float(np.square(beyond(low)).sum()) / (2.0 * (1.0 - r)) if r < 1.0 else 0.0
    return low * value + (entropy.of_mixture(low) if entropy else 0.0) - quadratic
