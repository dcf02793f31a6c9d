"""What is said of variables: arrays of them, statements about their states, and what factors of logic make of those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.structures.factor_graph.description import Scored
from partwise.structures.factor_graph.layout import AND_OUT, AT_MOST_ONE, IMPLY, KNAPSACK, OR, XOR

MOST_ENTRIES = 1 << 16  # of the table of a factor of logic that says two things of one variable


@dataclass(frozen=True, eq=False)
class Literals:
    """An array of statements "this variable is in this state", or is not."""

    numbers: np.ndarray  #: variables
    states: np.ndarray
    negated: np.ndarray

    def __getitem__(self, key: Any) -> Literals:
        return Literals(np.asarray(self.numbers[key]), np.asarray(self.states[key]), np.asarray(self.negated[key]))

    def __invert__(self) -> Literals:
        return Literals(self.numbers, self.states, ~self.negated)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.numbers.shape


@dataclass(frozen=True, eq=False)
class Variables:
    """An array of variables with the same number of states."""

    numbers: np.ndarray
    n_states: int
    is_bit: bool

    def __getitem__(self, key: Any) -> Variables:
        return Variables(np.asarray(self.numbers[key]), self.n_states, self.is_bit)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.numbers.shape

    def reshape(self, *shape: Any) -> Variables:
        """The same variables in another shape."""
        return Variables(self.numbers.reshape(*shape), self.n_states, self.is_bit)

    def is_(self, state: Any) -> Literals:
        """The statements that the variables are in a state (an int, or an array of them)."""
        states = np.broadcast_to(np.asarray(state, int), self.numbers.shape)
        if states.size and (states.min() < 0 or states.max() >= self.n_states):
            raise ValueError(f"Variables of {self.n_states} states have the states 0 to {self.n_states - 1}. Got {state!r}.")
        if self.is_bit:
            return Literals(self.numbers, np.zeros_like(states), states == 0)
        return Literals(self.numbers, states, np.zeros(states.shape, bool))

    @property
    def n_stored(self) -> int:
        """States that are kept: a variable of one state has a second one, which is forbidden, for one alone would mean a bit."""
        return max(self.n_states, 2)

    def __invert__(self) -> Literals:
        if not self.is_bit:
            raise TypeError(f"Only bits can be negated; say which of the {self.n_states} states is meant: ~x.is_(0).")
        return self.is_(0)


def with_room(scored: Scored, sizes: list[int], stored: list[int]) -> Scored:
    """Tables of these sizes as parts of larger ones, zero elsewhere: the states that variables of one state do not have."""

    def widened(table: np.ndarray, nothing: float) -> np.ndarray:
        wide = np.full((len(table), *stored), nothing, table.dtype)
        wide[tuple([slice(None), *map(slice, sizes)])] = table.reshape(-1, *sizes)
        return wide.reshape(len(table), -1)

    if scored.given is not None:
        return Scored(widened(np.asarray(scored.given), 0.0))
    tie = np.arange(int(np.prod(sizes))) if scored.tie is None else scored.tie
    return Scored(None, scored.features, scored.weights, widened(tie[None, :], -1)[0])


def allowed_by(kind: int, holds: np.ndarray, number: int, costs: Any) -> np.ndarray:
    """Which columns of `holds`, bool (literals, outputs), a factor of logic allows."""
    n = holds.sum(axis=0)
    if kind == XOR:
        return n == 1
    if kind == AT_MOST_ONE:
        return n <= 1
    if kind == OR:
        return n >= 1
    if kind in (AND_OUT, IMPLY):
        every = holds[:-1].all(axis=0)
        return every == holds[-1] if kind == AND_OUT else ~every | holds[-1]
    return (costs @ holds if kind == KNAPSACK else n) <= number
