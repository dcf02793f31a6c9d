"""Counting of references that a function was only lent goes; what leaves the function, and what it made itself, is counted."""

import sys

import numpy as np

from partwise.engine.borrowed import without_counting
from partwise.engine.compilation import compiled_loop, helper

MODULE = """
define i32 @_ZN4lent(ptr %retptr, ptr %arg.a.0, ptr %arg.b.0, ptr %arg.c.0) {
entry:
  tail call void @NRT_incref(ptr %arg.a.0)
  call void @NRT_incref(ptr nonnull %arg.b.0)
  call void @NRT_incref(ptr %arg.c.0)
  %.1 = call i32 @_ZN6helper(ptr %retptr, ptr %arg.a.0)
  %own = call ptr @NRT_MemInfo_alloc_aligned(i64 8, i32 8)
  %mixed = phi ptr [ %arg.c.0, %entry ], [ %own, %entry ]
  store ptr %arg.b.0, ptr %retptr
  call void @NRT_decref(ptr %arg.a.0)
  call void @NRT_decref(ptr %mixed)
  ret i32 0
}
"""


def test_only_what_stays_inside_is_not_counted():
    """a is lent on, b is returned, c may become what the function made itself."""
    found = [line.strip() for line in without_counting(MODULE).splitlines() if "cref" in line]
    assert found == [
        "call void @NRT_incref(ptr nonnull %arg.b.0)",
        "call void @NRT_incref(ptr %arg.c.0)",
        "call void @NRT_decref(ptr %mixed)",
    ]


@helper
def longer(a, b, own):
    """One of two views, or a copy."""
    if own:
        return a.copy()
    return a[1:] if len(a) > len(b) else b[1:]


@compiled_loop
def walk(a, b, n):
    total = 0.0
    for k in range(n):
        c = longer(a, b, k % 3 == 0)
        d = c if k % 2 else a
        total += c[0] + d[0] + longer(d, b, False)[0]
    return total


def test_arrays_live_as_long_as_they_should():
    """Counts are what they were, whatever was lent, chosen between, copied and dropped inside."""
    a, b = np.arange(5.0), np.arange(3.0)
    assert walk(a, b, 6) == walk.interpreted(a, b, 6)
    before = sys.getrefcount(a), sys.getrefcount(b)
    for _ in range(50):
        walk(a, b, 6)
    assert (sys.getrefcount(a), sys.getrefcount(b)) == before
    assert a.tolist() == [0, 1, 2, 3, 4] and b.tolist() == [0, 1, 2]
