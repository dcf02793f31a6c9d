"""
Hidden states: a label that behaves in several ways
===================================================

Class "ring" is everything around class "disc": no line separates them. Give each class a few hidden states, and each state its
own weights; which state an example is in, is inferred.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from partwise import Classifier

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 2)) * 1.6
y = np.where(np.hypot(*X.T) > 1.7, "ring", "disc")

# %%
# One state per class is a linear model. With several the border of the ring is made of pieces.
models = {n: Classifier("crf", C=30.0, hidden=n, max_epochs=60).fit(X, y) for n in (1, 2, 4)}
side = np.linspace(-5, 5, 160)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for axis, (n, model) in zip(axes, models.items(), strict=True):
    ring = model.predict_proba(grid)[:, list(model.classes_).index("ring")].reshape(160, 160)
    axis.contourf(side, side, ring, levels=20, cmap="RdBu", alpha=0.75, vmin=0, vmax=1)
    for label, colour in (("disc", "#8c1c13"), ("ring", "#0b3c5d")):
        axis.plot(*X[y == label].T, ".", color=colour, ms=3)
    axis.set(
        title=f"{n} state{'s' if n > 1 else ''} per class: {100 * model.score(X, y):.0f} %",
        xlim=(-4, 4),
        ylim=(-4, 4),
        xticks=[],
        yticks=[],
    )
plt.show()
