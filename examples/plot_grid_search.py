"""
Grid search in a pipeline
=========================

Estimators of partwise are estimators of scikit-learn: they clone, they go into pipelines, and grids search their parameters.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

from partwise import Classifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16.0, y, random_state=0, train_size=500)
pipeline = make_pipeline(PCA(20, random_state=0), Classifier(max_epochs=20))
grid = {"classifier__loss": ["hinge", "crf", "ramp_do"], "classifier__C": [0.01, 0.1, 1.0, 10.0]}
grid["classifier__solver"] = ["pegasos"]
search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
print(search.best_params_, f"held out: {100 * search.score(X_test, y_test):.1f} %")

# %%
scores = np.asarray(search.cv_results_["mean_test_score"])
losses, strengths = grid["classifier__loss"], grid["classifier__C"]
table = np.zeros((len(losses), len(strengths)))
for params, score in zip(search.cv_results_["params"], scores, strict=True):
    table[losses.index(params["classifier__loss"]), strengths.index(params["classifier__C"])] = score
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
picture = axis.imshow(table, cmap="viridis")
for r in range(len(losses)):
    for c in range(len(strengths)):
        axis.text(
            c, r, f"{100 * table[r, c]:.1f}", ha="center", va="center", color="white" if table[r, c] < table.max() - 0.01 else "k"
        )
axis.set_xticks(range(len(strengths)), strengths)
axis.set_yticks(range(len(losses)), losses)
axis.set(xlabel="C", title="accuracy in three folds, %")
figure.colorbar(picture)
plt.show()
