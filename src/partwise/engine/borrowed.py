"""Arrays that a function was given need no counting: whoever called it holds them until it returns.

numba counts a reference whenever an array is taken out of a NamedTuple or sliced, and drops it when the variable dies: two atomic
instructions each time, and two calls that keep LLVM from moving loads out of loops. Its own pruning finds pairs within a few
basic blocks; in loops as long as ours most are left. But numba's functions *borrow* their arguments: what a function adds to the
count of an argument it takes off again before it returns, so all of it can go, wherever it stands, as long as the reference does
not leave the function in another way. `without_counting` removes it from LLVM's text of a module, argument by argument:

    call void @NRT_incref(ptr %arg.problem.0)      goes, if %arg.problem.0 is otherwise only handed to other compiled functions,
    call void @NRT_decref(ptr %arg.problem.0)      which borrow it, too, or looked at through NRT_incref and NRT_decref;
    store, ret, phi, select, insertvalue ...       of %arg.problem.0 keep its counting as it is.

Arrays that are made inside a loop are counted as before: somebody has to free them.
"""

from __future__ import annotations

import re

COUNTING = re.compile(r"^\s+(?:tail )?call void @NRT_(?:incref|decref)\(ptr (?:\w+ )*(%[\w.]+|%\"[^\"]+\")\)")
FUNCTION = re.compile(r"^define [^\n]*\{\n.*?^\}$", re.M | re.S)
NAME = re.compile(r'%(?:[\w.$-]+|"[^"]+")')
BORROWING = re.compile(r"^\s+(?:%\S+ = )?(?:tail )?call [^@]*@(?:_ZN|\"_ZN)")  # numba's own functions, by their mangled names


def without_counting(ir: str) -> str:
    """LLVM's text of a module without the counting of references that functions were given."""
    return FUNCTION.sub(lambda found: _pruned(found.group()), ir)


def _pruned(function: str) -> str:
    if "@NRT_" not in function:
        return function
    head, _, body = function.partition("\n")
    given = {name for name in NAME.findall(head) if name.startswith(("%arg.", '%"arg.'))}
    lines, escaping = body.split("\n"), set()
    counting = [COUNTING.match(line) for line in lines]
    for line, counts in zip(lines, counting, strict=True):
        if counts is None and "%" in line and "arg." in line and not BORROWING.match(line):
            escaping.update(NAME.findall(line))
    gone = given - escaping
    kept = [line for line, counts in zip(lines, counting, strict=True) if counts is None or counts.group(1) not in gone]
    return "\n".join([head, *kept])
