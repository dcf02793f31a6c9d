"""Ask for weights before they are needed: sparse rows of weights lie all over memory, and waiting for them is most of scoring."""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper, when_compiling

AHEAD = 32  # non-zeros between the request and the use (measured: 8 is too late, 64 no better)
LINES = 4  # cache lines asked for per row of weights; longer rows are streamed by the hardware


def request(array, index):
    """Hint that array[index] will soon be read. Does nothing in the interpreter."""


@when_compiling
def _tell_of_requests(numba):
    from partwise.engine import instructions

    numba.overloads(request, instructions.request)


@helper
def request_row(w, r, width):
    """Hint that row r of the weights will soon be read."""
    lanes = 64 // w.itemsize
    start, last = r * width, r * width + width - 1
    for _ in range(LINES - 1):
        request(w, min(start, last))
        start += lanes
    request(w, np.int64(last))
