"""What all losses can tell; `records` has them."""

from __future__ import annotations

import math
from typing import Any

from partwise import kernels


class Loss:
    """What all public losses can tell. They are frozen dataclasses of their parameters."""

    beta: float
    gamma: float
    uses_target = True  #: whether it compares with one output, the target: then CCCP can choose it
    takes_sets = True  #: whether the truth may be a set of outputs: partial labels, hidden states
    found_by: tuple[str, ...] = ()  #: solvers that need none of `needs`, because they search outputs instead of listing them

    @property
    def name(self) -> str:
        """The name it is known by, or the spelling of its parameters: `get_loss` makes the same loss of either."""
        from partwise.losses.records import LOSSES, SPELLING  # which know all losses

        return next((name for name, loss in LOSSES.items() if loss == self), None) or SPELLING.spell(self)

    @property
    def is_smooth(self) -> bool:
        """Whether the loss has a gradient everywhere (finite beta) and its model defines probabilities."""
        return math.isfinite(self.beta)

    @property
    def has_gradient(self) -> bool:
        """Whether the loss has a gradient everywhere, probabilities or not."""
        return self.is_smooth

    @property
    def is_squared(self) -> bool:
        """Whether its slacks are quadratic (`losses.slacks`)."""
        return False

    @property
    def convex(self) -> Loss:
        """The convex half, as a loss against fixed targets: it bounds the loss from above where the target is the truth."""
        raise NotImplementedError

    @property
    def is_convex(self) -> bool:
        """Whether the loss is convex in w, for examples with one target."""
        return self.convex == self

    @property
    def uses_cost(self) -> bool:
        """Whether the loss looks at the cost of outputs."""
        return self.gamma > 0

    @property
    def kernel(self) -> Any:
        """The record compiled loops take."""
        raise NotImplementedError

    @property
    def needs(self) -> tuple[Any, ...]:
        """Kernels a structure must have for this loss."""
        oracle = (kernels.expected, kernels.indicate, kernels.add_parts) if self.is_smooth else (kernels.best,)
        return (*oracle, kernels.add_cost) if self.uses_cost else oracle

    def check(self, problem: Any) -> None:
        """Raise a ValueError if `problem`, which has the kernels, cannot be used with this loss."""

    def is_searched(self, problem: Any) -> bool:
        """Whether the oracle for this loss only searches the outputs of `problem`, so that values may be too low."""
        return False

    def unseen(self, problem: Any, C: Any, w: Any, n_jobs: int | None = None) -> float:
        """How much more than it was found to be sum_i C_i L_i(w) can be: zero, unless the oracle of `problem` is a search."""
        return 0.0


def check_number(value: Any, name: str, who: Any, positive: bool = False) -> None:
    """Raise unless `value` is a number >= 0 and finite, or positive and possibly infinite."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (value > 0 if positive else 0 <= value < math.inf):
        words = "(0, inf]" if positive else "[0, inf)"
        raise ValueError(f"The {name!r} parameter of {type(who).__name__} must be a float in {words}. Got {value!r} instead.")
