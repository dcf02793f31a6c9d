"""What a slack costs, inside compiled loops: linear or quadratic, one for each example or one for each output.

A max-margin loss is phi(xi) of the slack xi of a margin, or a sum of such terms. Either way its dual is that of a linear slack,
with other bounds on the multipliers and a diagonal term more:

    phi(xi)             multipliers of a slack    the dual pays besides
    max(0, xi)          at most C in sum          nothing
    1/2 max(0, xi)^2    any >= 0                  1/(2 C) (their sum)^2

So whoever asks these kernels for phi, its slope, the bound and the diagonal has one formulation for both. The factor 1/2 makes
the slope of phi the slack itself.

References
----------
P. Balamurugan, S. Shevade, T. Ravindra Babu. Efficient algorithms for linear summed error structural SVMs. Section I.
S. I. Hill, A. Doucet (2007). A framework for kernel-based multi-category classification. JAIR 30.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise.engine.compilation import kernel
from partwise.losses.in_loops import Maximum
from partwise.losses.rescaled import RescaledMaximum


class SquaredMaximum(NamedTuple):
    """SquaredHinge(gamma) as compiled loops see it."""

    gamma: float


class SummedMaximum(NamedTuple):
    """Summed(gamma) as compiled loops see it."""

    gamma: float


class SummedSquares(NamedTuple):
    """Summed(gamma, squared=True) as compiled loops see it."""

    gamma: float


@kernel
def charge(loss, slack):
    """phi(xi)."""


@kernel
def pull(loss, slack):
    """A subgradient of phi: the multiplier that a slack of this size asks for is C times that."""


@kernel
def most(loss, C):
    """The largest value of a multiplier."""


@kernel
def ridge(loss, C):
    """The diagonal term of the dual: 1 / C for quadratic slacks (but not for examples that do not count), else zero."""


@kernel
def shares_slack(loss):
    """Whether all outputs of an example share one slack: then the diagonal term is for the sum of their multipliers."""


@charge.implements(Maximum, RescaledMaximum)
def _(loss, slack):
    return slack  # the target has a piece, too: the highest is never negative, but for rounding


@charge.implements(SummedMaximum)
def _(loss, slack):
    return max(slack, 0.0)


@charge.implements(SquaredMaximum, SummedSquares)
def _(loss, slack):
    return 0.5 * slack * slack if slack > 0.0 else 0.0


@pull.implements(Maximum, RescaledMaximum)
def _(loss, slack):
    return 1.0


@pull.implements(SummedMaximum)
def _(loss, slack):
    return 1.0 if slack > 0.0 else 0.0


@pull.implements(SquaredMaximum, SummedSquares)
def _(loss, slack):
    return max(slack, 0.0)


@most.implements(Maximum, RescaledMaximum, SummedMaximum)
def _(loss, C):
    return C


@most.implements(SquaredMaximum, SummedSquares)
def _(loss, C):
    return np.inf


@ridge.implements(Maximum, RescaledMaximum, SummedMaximum)
def _(loss, C):
    return 0.0


@ridge.implements(SquaredMaximum, SummedSquares)
def _(loss, C):
    return 1.0 / C if C > 0.0 else 0.0


@shares_slack.implements(Maximum, RescaledMaximum, SquaredMaximum)
def _(loss):
    return True


@shares_slack.implements(SummedMaximum, SummedSquares)
def _(loss):
    return False
