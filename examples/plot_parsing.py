"""
Parsing: who depends on whom
============================

A dependency parser from a few hundred made-up sentences, its trees drawn as arcs, and how sure it is of each.
"""

# %%
# A small grammar draws sentences with their trees: the head of each word, from 1, and 0 for the root.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Arc

from partwise import DependencyParser

NOUNS, VERBS, ADJECTIVES = ["dog", "cat", "girl", "man", "park", "tree"], ["saw", "met", "liked"], ["old", "small", "red"]


def noun_phrase(rng, words, heads, relation):
    """A determiner, perhaps an adjective, a noun, and perhaps "in the park" behind it; returns where the noun is."""
    left = [("the", "DET"), *([(rng.choice(ADJECTIVES), "ADJ")] if rng.random() < 0.4 else [])]
    noun = len(words) + len(left) + 1
    for word, tag in left:
        words.append((word, tag))
        heads.append((noun, "det" if tag == "DET" else "amod"))
    words.append((str(rng.choice(NOUNS)), "NOUN"))
    heads.append((None, relation))
    if rng.random() < 0.3:
        words.append(("in", "ADP"))
        at = len(heads)
        heads.append((None, "case"))
        other = noun_phrase(rng, words, heads, "nmod")
        heads[other - 1], heads[at] = (noun, "nmod"), (other, "case")
    return noun


def sentence(rng):
    words, heads = [], []
    subject = noun_phrase(rng, words, heads, "nsubj")
    words.append((str(rng.choice(VERBS)), "VERB"))
    heads.append((0, "root"))
    verb = len(words)
    found = noun_phrase(rng, words, heads, "obj")
    heads[subject - 1], heads[found - 1] = (verb, "nsubj"), (verb, "obj")
    return words, ([h for h, _ in heads], [r for _, r in heads])


rng = np.random.default_rng(0)
drawn = [sentence(rng) for _ in range(260)]
X, y = [words for words, _ in drawn], [tree for _, tree in drawn]

# %%
# Train on 200, ask for the others.
parser = DependencyParser("crf", columns=["form", "upos"], hash_bits=16).fit(X[:200], y[:200])
scores = parser.attachment(X[200:], y[200:])
print(scores)

# %%
# The longest of them, with an arc from each head to its words; the width of an arc is its probability.
which = max(range(200, 260), key=lambda i: len(X[i]) if len(X[i]) <= 12 else 0)
tree, probability = parser.predict([X[which]])[0], parser.predict_marginals([X[which]])[0]
n = len(X[which])
figure, axis = plt.subplots(figsize=(10, 3.6), layout="constrained")
for m, (head, relation) in enumerate(zip(tree.heads, tree.relations, strict=True), 1):
    right = head == y[which][0][m - 1]
    colour = "#3b76af" if right else "#c0392b"
    if head:
        wide = abs(head - m)
        axis.add_patch(
            Arc(
                ((head + m) / 2, 0), wide, 1.1 * wide, theta1=0, theta2=180, color=colour, lw=0.5 + 2.5 * probability[m - 1, head]
            )
        )
        axis.text((head + m) / 2, 0.55 * wide + 0.06, relation, ha="center", size=8, color="0.3")
    else:
        axis.annotate("", (m, 0.05), (m, 3.4), arrowprops={"arrowstyle": "->", "color": colour, "lw": 3})
        axis.text(m + 0.08, 3.1, "root", size=8, color="0.3")
    axis.text(m, -0.3, X[which][m - 1][0], ha="center", size=11)
axis.set(xlim=(0.3, n + 0.7), ylim=(-0.6, 3.7))
axis.set_axis_off()

# %%
# Probabilities of all arcs: a row for each word, a column for each possible head.
figure, axis = plt.subplots(figsize=(6, 5), layout="constrained")
picture = axis.imshow(probability, cmap="Blues", vmin=0, vmax=1)
forms = [word for word, _ in X[which]]
axis.set_xticks(range(probability.shape[1]), (["root", *forms] if probability.shape[1] == n + 1 else forms), rotation=70)
axis.set_yticks(range(n), forms)
axis.set(title="P(head | word)", xlabel="head", ylabel="word")
figure.colorbar(picture)
plt.show()
