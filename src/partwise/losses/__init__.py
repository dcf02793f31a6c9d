"""What a model is trained to make small: losses as records, and what compiled loops see of them."""

from partwise.losses.records import LOSSES, Family, Loss, Ramp, Rescaled, RescaledRamp, SoftRamp, SquaredHinge, Summed, get_loss

__all__ = ["LOSSES", "Family", "Loss", "Ramp", "Rescaled", "RescaledRamp", "SoftRamp", "SquaredHinge", "Summed", "get_loss"]
