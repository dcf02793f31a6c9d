"""Losses and solvers with other parameters than their defaults."""

import dataclasses

from partwise.losses.records import Family, Ramp, Rescaled, RescaledRamp, SoftRamp, SquaredHinge, Summed

#: one of every record of a loss, with parameters of no named loss
EVERY_LOSS = [
    Family(3.0, 0.5), Ramp(0.5, 2.0, 0.3), SoftRamp(3.0, 0.5), Rescaled(0.7), RescaledRamp(0.3), Summed(2.5),
    Summed(2.5, squared=True), SquaredHinge(0.3),
]  # fmt: skip
#: a value for every parameter of a solver whose default says nothing of what else it may be
OTHER_VALUES = {
    "epsilon": 0.1,
    "variant": "b",
    "memory": 3,
    "eta": 0.3,
    "threshold": 0.01,
    "step": 0.3,
    "relaxation": 1.5,
    "optimum": 2.5,
    "update": "prediction",
    "ball": "paper",
}


def with_other_values(kind):
    """A solver none of whose parameters has its default."""
    values = {}
    for field in dataclasses.fields(kind):
        if isinstance(field.default, bool):
            values[field.name] = not field.default
        elif field.name in OTHER_VALUES:
            values[field.name] = OTHER_VALUES[field.name]
        else:
            values[field.name] = field.default + 1 if isinstance(field.default, int) else 0.5 * field.default + 0.125
        assert values[field.name] != field.default
    return kind(**values)
