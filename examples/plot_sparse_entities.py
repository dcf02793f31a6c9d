"""
Named entities with sparse weights
==================================

An L1 penalty sets most weights to exactly zero. How far can one go before names are missed?
"""

# %%
# Sentences with names of persons and places; a tenth of the words could be anything.
import matplotlib.pyplot as plt
import numpy as np

from partwise import SequenceLabeler
from partwise.datasets import make_tagged_sequences
from partwise.metrics import span_f1

X, y = make_tagged_sequences(250, seed=1, ambiguity=0.1)
X_test, y_test = make_tagged_sequences(250, seed=2, ambiguity=0.1)

# %%
# The same conditional random field from nearly no penalty to one that leaves nothing.
strengths = [10.0, 3.0, 1.0, 0.3, 0.1, 0.05]
kept, f1 = [], []
for C in strengths:
    model = SequenceLabeler("crf", C=C, l1_ratio=1.0, max_epochs=2000, constraints="iob2").fit(X, y)
    kept.append(int(np.count_nonzero(model.coef_)))
    f1.append(span_f1(y_test, model.predict(X_test)))
    print(f"C = {C:5}: {kept[-1]:4} of {model.coef_.size} weights are not zero, F1 {f1[-1]:.3f}")

# %%
figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
axis.plot(kept, f1, "o-", color="#3b76af")
for C, x, value in zip(strengths, kept, f1, strict=True):
    axis.annotate(f"C = {C:g}", (x, value), textcoords="offset points", xytext=(6, -12), size=8)
axis.set(xscale="symlog", xlabel="weights that are not zero", ylabel="F1 of names", title="how many weights are needed?")
axis.spines[["top", "right"]].set_visible(False)
axis.grid(alpha=0.3)
plt.show()
