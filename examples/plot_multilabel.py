"""
Several labels at once, and a timetable
=======================================

A text has several topics, and topics come together. `GraphLabeler` learns which; the same graphs, written by hand, plan a
timetable.
"""

# %%
# Multilabel data whose labels depend on each other: one row per example, one column per label.
import matplotlib.pyplot as plt
import numpy as np

from partwise import FactorGraph, GraphLabeler

rng = np.random.default_rng(0)
names = ["sport", "football", "politics", "election", "science"]


def texts(n):
    topics = np.zeros((n, 5), int)
    topics[:, 0] = rng.random(n) < 0.5
    topics[:, 1] = topics[:, 0] & (rng.random(n) < 0.7)
    topics[:, 2] = rng.random(n) < 0.4
    topics[:, 3] = topics[:, 2] & (rng.random(n) < 0.7)
    topics[:, 4] = (topics.sum(axis=1) == 0) | (rng.random(n) < 0.1)
    return topics @ mixing + 1.3 * rng.normal(size=(n, 12)), topics


mixing = rng.normal(size=(5, 12))
X, y = texts(200)
X_test, y_test = texts(300)
for edges in ("none", "full"):
    model = GraphLabeler(label_edges=edges, max_epochs=10).fit(X, y)
    found = np.asarray(model.predict(X_test))
    print(f"label_edges={edges!r}: {100 * np.mean((found == y_test).all(axis=1)):.1f} % of texts have all labels right")

# %%
# How often labels come together in the truth, and in what was predicted.
figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
for axis, (title, labels) in zip(axes, (("truth", y_test), ("predicted", found)), strict=True):
    axis.imshow(np.corrcoef(labels.T), cmap="RdBu", vmin=-1, vmax=1)
    axis.set_xticks(range(5), names, rotation=50)
    axis.set_yticks(range(5), names)
    axis.set_title(f"correlation of labels: {title}")

# %%
# A timetable: six talks, three slots, two rooms. Wishes are scores; a speaker cannot be in two rooms, and a room holds one talk.
wishes = rng.integers(0, 10, size=(6, 3)).astype(float)
g = FactorGraph()
x = g.bits((6, 3, 2))
scores = np.zeros((6, 3, 2, 1))
scores[..., 0] = wishes[:, :, None] + 0.01 * rng.random((6, 3, 2))
g.unary(x, scores)
for talk in range(6):
    g.xor([x[talk, slot, room] for slot in range(3) for room in range(2)])
for slot in range(3):
    for room in range(2):
        g.at_most_one([x[talk, slot, room] for talk in range(6)])
    g.at_most_one([x[0, slot, 0], x[0, slot, 1], x[1, slot, 0], x[1, slot, 1]])  # talks 0 and 1: the same speaker
answer = g.best("exact")
plan = answer.of(x)
print("proven:", answer.proven, "total of wishes:", round(float((plan.sum(axis=2) * wishes).sum())))

figure, axis = plt.subplots(figsize=(5, 3.2), layout="constrained")
for talk, slot, room in np.argwhere(plan):
    axis.add_patch(plt.Rectangle((slot, room), 0.94, 0.9, color=plt.get_cmap("Set2")(talk)))
    axis.text(slot + 0.47, room + 0.45, f"talk {talk}\nwish {wishes[talk, slot]:.0f}", ha="center", va="center")
axis.set(xlim=(0, 3), ylim=(0, 2), xticks=[0.5, 1.5, 2.5], xticklabels=["9:00", "10:00", "11:00"])
axis.set(yticks=[0.45, 1.45], yticklabels=["room A", "room B"], title="the best timetable")
plt.show()
