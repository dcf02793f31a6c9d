"""Part-of-speech tagging on Brown with its full set of 472 tags; every tenth sentence is test data. Long version only.

Templates ``words`` on both sides. crfsuite gets its attributes streamed, for memory's sake, and a limit of time: with 472 labels
an iteration costs 472^2 operations per token, which it does not avoid.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.contenders import BROWN_TAGGERS
from benchmarks.datasets import BROWN
from benchmarks.race import Options, race
from benchmarks.report import Report

LIMIT = 3600.0


def run(options: Options) -> Report:
    """All contenders, once each."""
    if options.short:
        return Report("brown", notes=["long version only: leave out --short"])
    once = replace(options, repeat=options.repeat or 1, limit=min(options.limit, LIMIT))
    outcomes = race(BROWN, BROWN_TAGGERS, once)
    return Report("brown", outcomes=outcomes, notes=[f"limit of wall time: {once.limit:.0f} s a process"])
