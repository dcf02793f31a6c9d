"""
Second order: arcs that look at each other
==========================================

A first-order parser scores every arc alone. Here neighbours hang on the same head more often than not, which no arc can see by
itself; with pairs of neighbouring arcs (``order=2``) the parser can.
"""

# %%
# Words between two heads: a first run of equal letters hangs on the left one, the rest on the right one; some letters are
# blurred.
import matplotlib.pyplot as plt
import numpy as np

from partwise import DependencyParser


def sentence(rng):
    """V x x x V: of the words between, the first run hangs on the left verb. Runs of equal words stay together."""
    n, cut = int(rng.integers(3, 7)), 0
    cut = int(rng.integers(1, n))
    first = str(rng.choice(["a", "b"]))
    letters = [first] * cut + [("b" if first == "a" else "a")] * (n - cut)
    letters = [letter if rng.random() > 0.08 else "c" for letter in letters]
    words = ["v", *letters, "w"]
    heads = [0, *[1] * cut, *[n + 2] * (n - cut), 1]
    return words, heads


rng = np.random.default_rng(0)
drawn = [sentence(rng) for _ in range(220)]
X, y = [words for words, _ in drawn], [heads for _, heads in drawn]

# %%
# The same data, both orders. Search with pairs of arcs is not exact in general; AD3 gives a bound, and says what it proved.
found = {}
for order in (1, 2):
    parser = DependencyParser(order=order, relations=False, hash_bits=14, max_epochs=8).fit(X[:120], y[:120])
    answers = parser.predict(X[120:])
    arcs = np.mean(np.concatenate([np.array(tree.heads) == heads for tree, heads in zip(answers, y[120:], strict=True)]))
    whole = np.mean([list(tree.heads) == list(heads) for tree, heads in zip(answers, y[120:], strict=True)])
    found[f"order {order}"] = (arcs, whole)
    print(f"order {order}: {100 * arcs:.1f} % of arcs, {100 * whole:.1f} % of trees")

# %%
figure, axis = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
at = np.arange(2)
for k, (name, values) in enumerate(found.items()):
    axis.bar(at + 0.38 * k, 100 * np.array(values), 0.36, label=name, color=["#9db8d2", "#3b76af"][k])
axis.set_xticks(at + 0.19, ["arcs", "whole trees"])
axis.set(ylabel="% right", ylim=(0, 125), title="pairs of arcs see what arcs cannot")
axis.legend(frameon=False, loc="upper center", ncols=2)
plt.show()
