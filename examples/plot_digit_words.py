"""
Words of digits: what structure buys
====================================

Noisy handwritten digits, strung together by a hidden grammar. A reader of single letters throws the grammar away; a reader of
words learns it along with the shapes.
"""

# %%
# Words come as arrays, 64 pixels for each letter.
import matplotlib.pyplot as plt
import numpy as np

from partwise import Classifier, SequenceLabeler
from partwise.datasets import make_digit_words

X, y = make_digit_words(150, seed=1)
X_test, y_test = make_digit_words(150, seed=2, part="test")
print(len(X), "words; the first:", y[0])

# %%
# One model looks at letters, the other at words. Everything else is the same: a hinge loss, and defaults.
letters = Classifier().fit(np.concatenate(X), np.concatenate(y))
words = SequenceLabeler().fit(X, y)
readings = {
    "letter by letter": [letters.predict(word).tolist() for word in X_test],
    "as words": words.predict(X_test),
}
for name, found in readings.items():
    right = np.mean(np.concatenate(found) == np.concatenate(y_test))
    whole = np.mean([list(a) == list(b) for a, b in zip(found, y_test, strict=True)])
    print(f"{name:18} {100 * right:.1f} % of letters, {100 * whole:.1f} % of words")

# %%
# A word where the two disagree: mistakes are red.
telling = max(range(len(X_test)), key=lambda i: sum(np.array(readings["letter by letter"][i]) != readings["as words"][i]))
truth = y_test[telling]
figure, axes = plt.subplots(1, len(truth), figsize=(1.1 * len(truth), 2.1))
for t, axis in enumerate(axes):
    axis.imshow(X_test[telling][t].reshape(8, 8), cmap="gray_r")
    axis.set(xticks=[], yticks=[])
    for row, found in enumerate(readings.values()):
        digit = found[telling][t]
        colour = "#2a7f3f" if digit == truth[t] else "#c0392b"
        axis.text(0.5, -0.25 - 0.34 * row, digit, color=colour, size=16, ha="center", transform=axis.transAxes)
figure.text(0.5, 0.93, "first line: letter by letter; second line: as words", ha="center", size=10)
figure.subplots_adjust(left=0.02, right=0.98, bottom=0.38, top=0.88, wspace=0.08)

# %%
# What it learned about the grammar: weights of transitions beside the probabilities that the words were drawn with.
from partwise.datasets import digit_grammar

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
left.imshow(digit_grammar()[1], cmap="Blues")
left.set(title="the hidden grammar", xlabel="next", ylabel="digit", xticks=range(10), yticks=range(10))
right.imshow(words.transitions_, cmap="RdBu", vmin=-np.abs(words.transitions_).max(), vmax=np.abs(words.transitions_).max())
right.set(title="weights of transitions", xlabel="next", xticks=range(10), yticks=range(10))
plt.show()
