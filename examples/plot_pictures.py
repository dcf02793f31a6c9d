"""
Pictures segmented
==================

Noisy pictures, pixel by pixel and with neighbours. Neighbouring pixels tend to have the same label, and the model learns how
much.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from partwise import Classifier, GraphLabeler
from partwise.datasets import make_pictures
from partwise.datasets.pictures import PALETTE

X, y = make_pictures(25, seed=1, size=(18, 18), noise=0.35)
X_test, y_test = make_pictures(12, seed=2, size=(18, 18), noise=0.35)

# %%
# Each pixel alone is a classifier; with its four neighbours it is a graph.
alone = Classifier("crf").fit(X.reshape(-1, 3), y.reshape(-1))
labeler = GraphLabeler(max_epochs=8).fit(X, y)
single = alone.predict(X_test.reshape(-1, 3)).reshape(y_test.shape)
together = np.stack(labeler.predict(X_test))
print(
    f"each pixel alone: {100 * np.mean(single == y_test):.1f} % right; with neighbours: {100 * np.mean(together == y_test):.1f} %"
)
certificate = labeler.certify(X_test)
print(f"answers proven to be the best of all labellings: {certificate.proven.sum()} of {len(X_test)}")

# %%
figure, axes = plt.subplots(3, 4, figsize=(8, 6), layout="constrained")
for k, row in enumerate(axes):
    columns = {"given": X_test[k], "pixels": PALETTE[single[k]], "neighbours": PALETTE[together[k]], "truth": PALETTE[y_test[k]]}
    for axis, (title, picture) in zip(row, columns.items(), strict=True):
        axis.imshow(np.clip(picture, 0, 1))
        axis.set_axis_off()
        if k == 0:
            axis.set_title(title)
plt.show()
