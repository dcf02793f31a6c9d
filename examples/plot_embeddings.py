"""
Embeddings as features, beside attributes
=========================================

A frozen network gives an array of numbers per token. They go into a `SequenceLabeler` beside attributes that you can read:
numbers are features with values, words are features that are there or not.
"""

# %%
# A stand-in for a network, so that nothing is downloaded: words that occur in the same company, from raw text, by a singular
# value decomposition. Any array (tokens, dimensions) does as well.
import matplotlib.pyplot as plt
import numpy as np

from partwise import SequenceLabeler
from partwise.datasets import make_sentences
from partwise.metrics import span_f1

raw = [[token[0].lower() for token in one] for one in make_sentences(1500, seed=9)]
words = sorted({word for one in raw for word in one})
number = {word: k for k, word in enumerate(words)}
counts = np.zeros((len(words), 2 * len(words)))
for one in raw:
    for left, right in zip(one[:-1], one[1:], strict=True):
        counts[number[right], number[left]] += 1
        counts[number[left], len(words) + number[right]] += 1
vectors, sizes, _ = np.linalg.svd(np.log1p(counts), full_matrices=False)
vectors = vectors[:, :10] * np.sqrt(len(words)) / 2


def embed(word):
    return vectors[number[word.lower()]] if word.lower() in number else np.zeros(10)


# %%
# A token is a dict: its word, and ten numbers. Only forty sentences have labels.
def tokens(sentence, what):
    rows = []
    for word, *_ in sentence:
        attributes = {"word": word.lower()} if "words" in what else {}
        if "vectors" in what:
            attributes |= {f"v{k}": float(value) for k, value in enumerate(embed(word))}
        rows.append(attributes)
    return rows


sizes_, found = [5, 10, 20, 40, 80], {"words": [], "vectors": [], "words and vectors": []}
test = make_sentences(150, seed=2)
for n in sizes_:
    train = make_sentences(n, seed=1)
    for what, values in found.items():
        model = SequenceLabeler("crf").fit([tokens(one, what) for one in train], [[token[2] for token in one] for one in train])
        answers = model.predict([tokens(one, what) for one in test])
        values.append(span_f1([[token[2] for token in one] for one in test], answers))
print({what: [round(value, 3) for value in values] for what, values in found.items()})

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for (what, values), style in zip(found.items(), ("s--", "^:", "o-"), strict=True):
    left.plot(sizes_, values, style, label=what)
left.set(xscale="log", xticks=sizes_, xticklabels=sizes_, xlabel="labelled sentences", ylabel="F1 of chunks")
left.legend(frameon=False)
tags = {token[0].lower(): token[1] for one in make_sentences(300, seed=9) for token in one}
for tag in sorted(set(tags.values())):
    points = np.array([vectors[number[word], 1:3] for word, own in tags.items() if own == tag])
    right.plot(*points.T, ".", label=tag)
right.set(title="words, by two of ten numbers", xticks=[], yticks=[])
right.legend(frameon=False, fontsize=6, ncols=2)
plt.show()
