"""Noisy pictures whose pixels have labels, made on the spot from a seed: discs, boxes and stripes on a ground."""

from __future__ import annotations

from typing import Any

import numpy as np

GROUND, RED, BLUE, GREEN = (0.5, 0.5, 0.5), (0.85, 0.3, 0.25), (0.25, 0.45, 0.85), (0.35, 0.75, 0.3)
PALETTE = np.array([GROUND, RED, BLUE, GREEN, (0.9, 0.75, 0.2), (0.55, 0.3, 0.7), (0.2, 0.75, 0.75)])


def make_pictures(
    n_pictures: int = 40,
    seed: int = 0,
    *,
    size: tuple[int, int] = (20, 20),
    n_labels: int = 4,
    noise: float = 0.35,
    shapes: int = 4,
) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of shapes, and the label of every pixel.

    Label 0 is the ground; label 1 are discs, 2 boxes, 3 stripes from edge to edge, 4 discs again, and so on, each in a colour of
    its own. Later shapes hide earlier ones. A pixel alone says little about its label, its neighbours say the rest.

    Parameters
    ----------
    n_pictures, seed : int
    size : (height, width)
    n_labels : int from 2 to 7
    noise : float
        Standard deviation of Gaussian noise on each of the three colours, which are in [0, 1] and may leave it.
    shapes : int
        In each picture.

    Returns
    -------
    X : array (pictures, height, width, 3)
    y : int array (pictures, height, width)

    Examples
    --------
    >>> X, y = make_pictures(2, size=(8, 10), n_labels=3)
    >>> X.shape, y.shape
    ((2, 8, 10, 3), (2, 8, 10))
    """
    if not (isinstance(n_labels, int | np.integer) and 2 <= n_labels <= len(PALETTE)):
        raise ValueError(
            f"The 'n_labels' parameter of make_pictures must be an int in the range [2, {len(PALETTE)}]. Got {n_labels!r} "
            "instead."
        )
    rng = np.random.default_rng(seed)
    height, width = size
    y = np.zeros((n_pictures, height, width), np.int64)
    for picture in y:
        for _ in range(shapes):
            label = int(rng.integers(1, n_labels))
            picture[_shape(label, height, width, rng)] = label
    X = PALETTE[y] + rng.normal(0.0, noise, (*y.shape, 3))
    return X, y


def _shape(label: int, height: int, width: int, rng: Any) -> np.ndarray:
    """Which pixels a random shape of this label covers."""
    rows, columns = np.mgrid[:height, :width]
    row, column = rng.uniform(0, height), rng.uniform(0, width)
    radius = rng.uniform(0.12, 0.3) * min(height, width)
    if label % 3 == 1:
        return np.asarray((rows - row) ** 2 + (columns - column) ** 2 <= radius**2)
    if label % 3 == 2:
        tall = radius * rng.uniform(0.6, 1.2)
        return np.asarray((abs(rows - row) <= tall) & (abs(columns - column) <= radius))
    angle = rng.uniform(0, np.pi)
    away = (rows - row) * np.cos(angle) + (columns - column) * np.sin(angle)
    return np.asarray(abs(away) <= 0.07 * min(height, width) + 0.5)
