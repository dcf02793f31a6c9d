"""
Brackets: constituency trees
============================

A grammar and a parser from trees in brackets. The tree it finds is drawn, and how sure it is of each bracket.
"""

# %%
import matplotlib.pyplot as plt

from partwise import ConstituencyParser
from partwise.datasets import make_brackets

train, test = make_brackets(200), make_brackets(60, seed=1)
parser = ConstituencyParser("crf").fit(train)
print(f"F1 of labelled brackets: {100 * parser.score(test):.1f} %")
words = [("they", "PRP"), ("saw", "VBD"), ("the", "DT"), ("man", "NN"), ("with", "IN"), ("the", "DT"), ("dog", "NN"), (".", ".")]
tree = parser.predict([words])[0]
print(tree)

# %%
# Each node above the middle of its words; its colour is the probability of the bracket, given the sentence.
probability = parser.predict_marginals([words])[0]


def draw(node, axis, first, depth):
    """Draw a node; returns where it stands and how many words it has."""
    if isinstance(node, str) or not getattr(node, "children", None):
        return first + 0.0, 1
    places, n = [], 0
    for child in node.children:
        x, size = draw(child, axis, first + n, depth + 1) if not isinstance(child, str) else (first + n, 1)
        places.append((x, depth + 1 if not isinstance(child, str) else 6.4, child))
        n += size
    x = sum(place for place, _, _ in places) / len(places)
    for place, low, _ in places:
        axis.plot([x, place], [-depth - 0.18, -low + 0.22], color="0.6", lw=1.2, zorder=0)
    p = probability.get((node.label, first, first + n))
    face = "#eef2f6" if p is None else plt.get_cmap("Blues")(0.1 + 0.35 * p)
    axis.text(x, -depth, node.label, ha="center", va="center", bbox={"boxstyle": "round", "fc": face, "ec": "0.7"})
    return x, n


figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
draw(tree, axis, 0, 0)
for k, (word, _) in enumerate(words):
    axis.text(k, -6.7, word, ha="center", size=12)
axis.set(xlim=(-0.6, len(words) - 0.4), ylim=(-7, 0.5))
axis.set_axis_off()
plt.show()

# %%
# Brackets that are nearly as good: the second best tree hangs "with the dog" elsewhere.
for other, value in parser.predict_kbest([words], k=2)[0]:
    print(f"{value:8.2f}  {other}")
