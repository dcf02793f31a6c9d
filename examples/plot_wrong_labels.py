"""
Wrong labels: found and mended
==============================

Every corpus has some. Models that have not seen an example judge it, and every token gets the probability that its label is
wrong.
"""

# %%
# We plant errors of which we know where they are: another label for one token in twenty.
import matplotlib.pyplot as plt
import numpy as np

from partwise import SequenceLabeler
from partwise.datasets import make_tagged_sequences, plant_errors
from partwise.metrics import average_precision, span_f1

X, y = make_tagged_sequences(250, seed=1, ambiguity=0.15)
X_test, y_test = make_tagged_sequences(200, seed=2, ambiguity=0.15)
noisy = plant_errors(y, 0.05, seed=0, how="token")
wrong = np.concatenate([[a != b for a, b in zip(one, two, strict=True)] for one, two in zip(y, noisy.y, strict=True)])

# %%
# How probable is it that a label is wrong?
labeler = SequenceLabeler("crf")
probability = labeler.suspicion(X, noisy.y, parts=True)
print(f"average precision {average_precision(wrong, probability):.3f}")

figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
bins = np.linspace(0, 1, 21)
axis.hist(
    [probability[~wrong], probability[wrong]], bins, stacked=True, color=["#9db8d2", "#c0392b"], label=["right", "planted errors"]
)
axis.set(yscale="log", xlabel="probability that the label is wrong", ylabel="tokens", title="planted errors stand out")
axis.legend(frameon=False)

# %%
# A suspect says what was given and what is believed. Take what it believes, and train again.
suspects = labeler.suspects(X, noisy.y, precision=0.9)
print(len(suspects), "sentences listed; the first:", suspects[0].parts[0])
mended = [list(labels) for labels in noisy.y]
for suspect in suspects:
    for part in suspect.parts:
        mended[suspect.example][part.part] = part.believed

found = {}
for name, labels in (("as given", noisy.y), ("mended", mended), ("no errors", y)):
    found[name] = span_f1(y_test, SequenceLabeler("crf").fit(X, labels).predict(X_test))
    print(f"{name:10} F1 {found[name]:.3f}")

figure, axis = plt.subplots(figsize=(4.5, 3), layout="constrained")
axis.barh(list(found), list(found.values()), color=["#c0392b", "#3b76af", "#888"])
axis.set(xlim=(min(found.values()) - 0.05, 1), xlabel="F1 on clean test data", title="trained on labels ...")
plt.show()
