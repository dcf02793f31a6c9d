"""
Aligning proteins: the best alignment and all the others
========================================================

Substitution scores and gap penalties are learned from pairs of sequences whose alignment is known. The heat map shows the
probability that two letters belong together, summed over all alignments.
"""

# %%
# Pairs that evolved from common ancestors: letters change within groups, pieces get lost or come in.
import matplotlib.pyplot as plt
import numpy as np

from partwise import Aligner

GROUPS = ["ILVM", "FYW", "KRH", "DENQ", "STAG", "PC"]
LETTERS = "".join(GROUPS)


def changed(rng, letter):
    group = next(group for group in GROUPS if letter in group)
    return str(rng.choice(list(group if rng.random() < 0.8 else LETTERS))) if rng.random() < 0.5 else letter


def relatives(rng, n=60):
    """Two rows of an alignment, with ``-`` for gaps."""
    upper, lower, k = [], [], 0
    ancestor = rng.choice(list(LETTERS), n)
    while k < n:
        what, size = rng.random(), int(rng.geometric(0.4))
        if what < 0.05:
            upper += ["-"] * size
            lower += list(rng.choice(list(LETTERS), size))
        elif what < 0.1:
            upper += list(ancestor[k : k + size])
            lower += ["-"] * len(ancestor[k : k + size])
            k += size
        else:
            upper.append(str(ancestor[k]))
            lower.append(changed(rng, str(ancestor[k])))
            k += 1
    return "".join(upper), "".join(lower)


rng = np.random.default_rng(3)
rows = [relatives(rng) for _ in range(60)]
pairs = [tuple(row.replace("-", "") for row in two) for two in rows]
aligner = Aligner().fit(pairs[:45], rows[:45])
print(aligner.accuracy(pairs[45:], rows[45:]))
found = aligner.predict(pairs[45:46])[0]
print(found.draw())

# %%
# The posterior heat map of this pair, and the path of the true alignment.
probability = aligner.predict_marginals(pairs[45:46])[0]
a, b = pairs[45]
figure, axis = plt.subplots(figsize=(6.2, 5.6), layout="constrained")
picture = axis.imshow(probability, cmap="magma_r", vmin=0, vmax=1)
i = j = -1
path = []
for upper, lower in zip(*rows[45], strict=True):
    i, j = i + (upper != "-"), j + (lower != "-")
    if upper != "-" and lower != "-":
        path.append((j, i))
axis.plot(*np.array(path).T, ".", color="#2aa198", ms=3, label="truth")
axis.set(title="P(letters are aligned)", xlabel="second sequence", ylabel="first sequence")
axis.legend(loc="upper right")
figure.colorbar(picture)

# %%
# What it learned about letters: groups that replace each other.
table = aligner.substitution_matrix()
figure, axis = plt.subplots(figsize=(5.6, 5), layout="constrained")
letters = sorted(LETTERS)
order = [letters.index(letter) for letter in LETTERS]
shown = np.asarray(table)[: len(letters), : len(letters)][np.ix_(order, order)]
limit = np.abs(shown).max()
axis.imshow(shown, cmap="RdBu", vmin=-limit, vmax=limit)
axis.set_xticks(range(len(LETTERS)), LETTERS)
axis.set_yticks(range(len(LETTERS)), LETTERS)
axis.set(title="learned substitution scores")
plt.show()
