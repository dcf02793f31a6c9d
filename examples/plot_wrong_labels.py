"""
Wrong labels: found and mended
==============================

Every corpus has some. Models that have not seen an example judge it, and every token gets the probability that its label is
wrong.
"""

# %%
# We plant errors of which we know where they are: another label for one token in ten. A token is known by its word, its part of
# speech, and the part of speech before.
import matplotlib.pyplot as plt
import numpy as np

from partwise import SequenceLabeler
from partwise.datasets import make_sentences, plant_errors
from partwise.metrics import average_precision, span_f1


def attributes(sentence):
    before = ["START", *(tag for _, tag, _ in sentence)]
    return [[f"word={word}", f"tag={tag}", f"before={before[t]}"] for t, (word, tag, _) in enumerate(sentence)]


def labels_of(sentences):
    return [[label for *_, label in sentence] for sentence in sentences]


train, test = make_sentences(300, seed=0), make_sentences(200, seed=1)  # word, part of speech, chunk label
X, y, X_test, y_test = [attributes(one) for one in train], labels_of(train), [attributes(one) for one in test], labels_of(test)
noisy = plant_errors(y, 0.1, seed=0, how="token")
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


def errors(labels):
    return sum(a != b for one, two in zip(labels, y, strict=True) for a, b in zip(one, two, strict=True))


print(f"wrong labels: {errors(noisy.y)} planted, {errors(mended)} after mending")
found = {}
for name, labels in (("as given", noisy.y), ("mended", mended), ("no errors", y)):
    found[name] = span_f1(y_test, SequenceLabeler("crf").fit(X, labels).predict(X_test))
    print(f"{name:10} F1 {found[name]:.3f}")

figure, axis = plt.subplots(figsize=(4.5, 3), layout="constrained")
axis.bar_label(axis.barh(list(found), list(found.values()), color=["#c0392b", "#3b76af", "#888"]), fmt="%.3f", padding=3)
axis.set(xlim=(0.9, 1), xlabel="F1 on clean test data", title="trained on labels ...")
axis.invert_yaxis()
plt.show()
