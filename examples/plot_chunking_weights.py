"""
Chunks of sentences, and reading the weights
============================================

Which words make a noun phrase? A chunker is trained from columns of words and parts of speech; then we look at what it believes.
"""

# %%
# Made-up sentences, a token being a word, its part of speech and its chunk label.
import matplotlib.pyplot as plt
import numpy as np

from partwise import SequenceLabeler
from partwise.datasets import make_sentences
from partwise.metrics import span_scores


def parts(sentences):
    return [[token[:2] for token in one] for one in sentences], [[token[2] for token in one] for one in sentences]


X, y = parts(make_sentences(300, seed=1))
X_test, y_test = parts(make_sentences(100, seed=2))
print(list(zip(X[0], y[0], strict=True))[:5])

# %%
# Templates say what a token looks like to the model: no strings are built, and features get names when you ask.
chunker = SequenceLabeler(templates=["w[0]", "t[0]", "t[-1]|t[0]", "t[0]|t[1]"], columns=["w", "t"]).fit(X, y)
scores = span_scores(y_test, chunker.predict(X_test))
print(f"precision {scores.precision:.3f}, recall {scores.recall:.3f}, F1 {scores.f1:.3f}")

# %%
# The features that speak most strongly for and against the beginning of a noun phrase.
label = list(chunker.classes_).index("B-NP")
weights = chunker.coef_[:, label] if chunker.coef_.shape[1] == len(chunker.classes_) else chunker.coef_[label]
weights = np.asarray(weights, float)
order = np.argsort(weights)
shown = [*order[:8], *order[-8:]]
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
axis.barh(range(16), weights[shown], color=["#c0392b" if weights[j] < 0 else "#3b76af" for j in shown])
axis.set_yticks(range(16), [chunker.feature_name(int(j)) for j in shown], size=8)
axis.set(title="what speaks for B-NP, and against it", xlabel="weight")
axis.spines[["top", "right"]].set_visible(False)

# %%
# And which label follows which.
figure, axis = plt.subplots(figsize=(5, 4), layout="constrained")
limit = float(np.abs(chunker.transitions_).max())
picture = axis.imshow(chunker.transitions_, cmap="RdBu", vmin=-limit, vmax=limit)
axis.set_xticks(range(len(chunker.classes_)), chunker.classes_, rotation=60)
axis.set_yticks(range(len(chunker.classes_)), chunker.classes_)
axis.set(title="weights of transitions", xlabel="next label")
figure.colorbar(picture)
plt.show()
