"""
Write your own structure
========================

Choose exactly m of K topics for a document. Nothing in the library knows such outputs; a few kernels teach it, and then all
solvers and losses work. The file is explained line by line in :doc:`/first-structure`.
"""

# %%
# The kernels are in ``examples/first_structure.py``: sizes, scores, costs, features, and two oracles.
import sys
from pathlib import Path

import matplotlib.pyplot as plt

from partwise import solve

sys.path.insert(0, str(Path("../examples").resolve()))
sys.path.insert(0, "examples")
from first_structure import exact_matches, make_documents

train, test = make_documents(300, seed=1), make_documents(300, seed=2)

# %%
# A structural SVM by two solvers and a conditional random field: what they reach, epoch by epoch.
figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
for loss, solver in (("hinge", "sdm"), ("hinge", "bcfw"), ("crf", "lbfgs")):
    result = solve(train, loss, solver, C=0.1, max_epochs=30, evaluate="epoch")
    gaps = [max(record.primal - result.primal, 1e-6) / result.primal for record in result.history]
    axis.semilogy(range(1, len(gaps) + 1), gaps, "o-", ms=3, label=f"{loss} by {solver}")
    print(f"{loss} by {solver}: {100 * exact_matches(test, result.w):.1f} % of documents have all topics right")
axis.set(xlabel="epoch", ylabel="relative distance to the last value", title="a structure of our own, solvers of the house")
axis.legend(frameon=False)
plt.show()
