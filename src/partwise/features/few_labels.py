"""Scores of rows where there are few labels: the sums of up to three of them stay in registers, features run in the inner loop.

A row of weights is as long as there are labels. One of six or fewer is too short for vectors: a loop over it spends its time on
asking how long it is, and writes `out` once for each feature. This way two labels take a third of the time with sparse rows, six
two thirds, seven as long as the other way.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper

FEW = 6


@helper
def last_of(width, j):
    """Of the labels from j on that are summed in one go, at most three, the last one, counted from j: 4 are 2 and 2."""
    return 2 if width - j == 3 or width - j > 4 else min(width - j - 1, 1)


@helper
def add_few(out, j, last, first, second, third):
    """Add the sums of these labels, of which there are ``last + 1``."""
    out[j] += first
    if last >= 1:
        out[j + 1] += second
    if last == 2:
        out[j + 2] += third


@helper
def emit_few_ones(w, index, k, end, width, out):
    """`emit_ones` where there are few labels: their sums stay in registers, while rows this short are no work for vectors."""
    j = 0
    while j < width:
        last, a, b, c = last_of(width, j), 0.0, 0.0, 0.0
        if last == 2:
            for at in range(k, end):
                start = np.int64(index[at]) * width + j
                a += w[start]
                b += w[start + 1]
                c += w[start + 2]
        else:
            for at in range(k, end):
                start = np.int64(index[at]) * width + j
                a += w[start]
                b += w[start + last]
        add_few(out, j, last, a, b, c)
        j += last + 1


@helper
def emit_few(w, index, value, k, end, width, out):
    """`emit_scaled` where there are few labels."""
    j = 0
    while j < width:
        last, a, b, c = last_of(width, j), 0.0, 0.0, 0.0
        if last == 2:
            for at in range(k, end):
                start, x = np.int64(index[at]) * width + j, value[at]
                a += x * w[start]
                b += x * w[start + 1]
                c += x * w[start + 2]
        else:
            for at in range(k, end):
                start, x = np.int64(index[at]) * width + j, value[at]
                a += x * w[start]
                b += x * w[start + last]
        add_few(out, j, last, a, b, c)
        j += last + 1


@helper
def emit_few_of_all(x, w, width, out):
    """`emit` of a dense row where there are few labels."""
    j = 0
    while j + 3 <= width:
        a, b, c, at = 0.0, 0.0, 0.0, j
        for f in range(len(x)):
            a += x[f] * w[at]
            b += x[f] * w[at + 1]
            c += x[f] * w[at + 2]
            at += width
        add_few(out, j, 2, a, b, c)
        j += 3
    while j < width:
        a, at = 0.0, j
        for f in range(len(x)):
            a += x[f] * w[at]
            at += width
        out[j] += a
        j += 1
