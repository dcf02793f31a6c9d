"""How long a new process takes: ``import partwise``, and the first fit on the demo's data with compiled code on disk."""

from __future__ import annotations

import statistics

import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from benchmarks.timing import child
from partwise.datasets import make_digit_words

IMPORT = """
import time
clock = time.perf_counter()
import partwise
print(time.perf_counter() - clock)
"""

# The data come from a file, so that nothing the fit needs has been imported before the clock starts but numpy.
FIRST_FIT = """
import time
import numpy as np
data = np.load({words!r})
X, y = np.split(data["x"], data["edges"]), [list(w) for w in np.split(data["y"], data["edges"])]
clock = time.perf_counter()
from partwise import SequenceLabeler
imported = time.perf_counter()
SequenceLabeler(loss={loss!r}, C=0.1, solver={solver!r}, dtype="float64").fit(X, y)
print([time.perf_counter() - imported, imported - clock])
"""


def run(options: Options) -> Report:
    """Start-up times; nobody to compare with."""
    X, y = make_digit_words(800)
    words = options.folder / "digit_words.npz"
    np.savez(words, x=np.vstack(X), y=np.concatenate(y), edges=np.cumsum([len(w) for w in y])[:-1])
    found = [Row("-", "import partwise", "s", statistics.median(child("-c", IMPORT) for _ in range(options.repeats)), None, "-")]
    for loss, solver in (("hinge", "sdm"), ("crf", "lbfgs")):
        program = FIRST_FIT.format(words=str(words), loss=loss, solver=solver)
        child("-c", program)  # leaves the compiled code on disk
        times = [child("-c", program) for _ in range(options.repeats)]
        fit, imports = (statistics.median(column) for column in zip(*times, strict=True))
        note = f"and {imports:.2f} s before it to import the estimator (scikit-learn, scipy, numba)"
        found.append(Row("800 digit words", f"first fit in a new process, {loss}", "s", fit, None, "-", note))
    return Report("startup", found)
