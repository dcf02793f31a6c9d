"""
Solvers raced to a gap
======================

The same problem, a structural SVM of chains, by five algorithms. A lower bound of what can be reached comes with each of them;
the distance to the best bound is a certificate, and the race ends where that is small.
"""

# %%
# Words of handwritten digits, strung together by a grammar: 64 numbers for each letter.
import matplotlib.pyplot as plt
import numpy as np

from partwise import chain_problem, solve
from partwise.datasets import make_digit_words

X, y = make_digit_words(80, seed=1)
problem = chain_problem(np.concatenate(X), lengths=[len(word) for word in X], gold=np.concatenate(y))

# %%
# Values after every epoch. An epoch is a pass over all words, whatever the solver does with it.
runs = {
    name: solve(problem, "hinge", name, C=0.1, max_epochs=40, tol=1e-4, evaluate="epoch")
    for name in ("pegasos", "sdm", "bcfw", "oneslack", "bmrm")
}
best = max(run.dual for run in runs.values())
figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, run in runs.items():
    gap = [max(record.primal - best, 1e-9) / best for record in run.history]
    axis.semilogy(range(1, len(gap) + 1), gap, label=name)
    print(f"{name:8} primal {run.primal:.3f}, dual {run.dual:.3f}, {len(run.history)} epochs, {run.message}")
axis.axhline(1e-3, color="0.6", lw=0.8, ls="--")
axis.set(xlabel="passes over the data", ylabel="relative gap to the best bound", title="a structural SVM, five ways")
axis.legend(frameon=False)
axis.grid(alpha=0.3)
plt.show()
