"""
Folding RNA: arcs and probabilities
===================================

Which bases pair? A folder learns the scores of stacks, loops and bulges from sequences with known structures.
"""

# %%
# Made-up sequences of a few helices each.
import matplotlib.pyplot as plt
import numpy as np

from partwise import RnaFolder
from partwise.datasets import read_dot_bracket
from partwise.tasks.folding.drawing import draw

OTHER = {"G": "C", "C": "G", "A": "U", "U": "A"}


def helix(rng, depth=0):
    """A stem around a loop, or around two more stems."""
    stem = int(rng.integers(4, 8))
    left = "".join(rng.choice(list("GCAU"), stem, p=[0.38, 0.38, 0.12, 0.12]))
    if depth < 1 and rng.random() < 0.5:
        inner = [helix(rng, depth + 1) for _ in range(2)]
        inside, shape = "A" + "A".join(one for one, _ in inner) + "A", "." + ".".join(two for _, two in inner) + "."
    else:
        size = int(rng.integers(4, 8))
        inside, shape = "".join(rng.choice(list("AU"), size, p=[0.7, 0.3])), "." * size
    return left + inside + "".join(OTHER[base] for base in reversed(left)), "(" * stem + shape + ")" * stem


def rna(rng):
    parts = [helix(rng) for _ in range(2)]
    return "AA" + "AAUA".join(one for one, _ in parts) + "UA", ".." + "....".join(two for _, two in parts) + ".."


rng = np.random.default_rng(1)
drawn = [rna(rng) for _ in range(60)]
sequences, structures = [one for one, _ in drawn], [two for _, two in drawn]
folder = RnaFolder().fit(sequences[:40], structures[:40])
print(folder.base_pairs(sequences[40:], structures[40:]))

# %%
# One of the others: above what was found, below the truth.
which = 40 + int(np.argmax([len(one) for one in sequences[40:]]))
sequence = sequences[which]
found = folder.predict([sequence])[0]
print(sequence, found, sep="\n")
figure, axis = plt.subplots(figsize=(10, 5), layout="constrained")
draw(axis, sequence, read_dot_bracket(found)[0], truth=read_dot_bracket(structures[which])[0])
axis.set_axis_off()

# %%
# Probabilities of all pairs: those of the truth have a ring.
probability = np.asarray(folder.predict_marginals([sequence])[0])
figure, axis = plt.subplots(figsize=(6, 5.4), layout="constrained")
square = probability if probability.ndim == 2 else np.zeros((len(sequence), len(sequence)))
picture = axis.imshow(np.maximum(square, square.T), cmap="Blues", vmin=0, vmax=1)
partners = read_dot_bracket(structures[which])[0]
true = [(i, j) for i, j in enumerate(partners) if j >= 0]
axis.plot(*np.array(true).T, "o", mfc="none", mec="#c1551b", ms=5)
axis.set(title="P(bases pair)", xlabel="base", ylabel="base")
figure.colorbar(picture)
plt.show()
