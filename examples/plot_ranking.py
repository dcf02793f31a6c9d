"""
Ranking: the best documents first
=================================

Queries with judged documents; a ranker learns to put relevant ones on top, where people look.
"""

# %%
# 80 queries with 25 documents of grades 0 to 2. Grades depend on four of ten features; a few documents are far off, as spam is.
import matplotlib.pyplot as plt
import numpy as np

from partwise import Ranker
from partwise.metrics import ndcg


def queries(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n * 25, 10))
    value = X[:, :4] @ [1.0, 0.8, -0.6, 0.4] + 0.8 * rng.normal(size=n * 25)
    grade = np.digitize(value, [1.2, 2.2])
    spam = rng.random(n * 25) < 0.03
    X[spam] *= 4.0
    return X, grade, np.repeat(np.arange(n), 25)


X, y, groups = queries(80, 0)
X_test, y_test, groups_test = queries(80, 1)
ranker = Ranker().fit(X, y, groups=groups)

# %%
# NDCG by depth, beside least squares on the grades and beside chance.
coefficients = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
scores = {
    "Ranker": ranker.decision_function(X_test) if hasattr(ranker, "decision_function") else ranker.predict(X_test),
    "least squares": np.column_stack([X_test, np.ones(len(X_test))]) @ coefficients,
    "chance": np.random.default_rng(0).random(len(X_test)),
}
depths = range(1, 16)
figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
for (name, values), style in zip(scores.items(), ("o-", "s--", ":"), strict=True):
    curve = [ndcg(y_test, values, groups_test, k=k) for k in depths]
    axis.plot(depths, curve, style, label=name, ms=4)
    print(f"{name:14} NDCG@5 {curve[4]:.3f}")
axis.set(xlabel="documents that are looked at", ylabel="NDCG", title="how good the top of the list is")
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)

# %%
# One query: its documents in the order that was found; the colour is the grade.
first = groups_test == 0
order = np.argsort(-np.asarray(scores["Ranker"])[first])
figure, axis = plt.subplots(figsize=(7, 1.2), layout="constrained")
axis.imshow(y_test[first][order][None], cmap="Blues", aspect="auto", vmin=0, vmax=2)
axis.set(yticks=[], xlabel="place in the list", title="grades, best first")
plt.show()
