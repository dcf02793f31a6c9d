"""
Partial labels: learning from what is known
===========================================

Often some labels are not known, or known to be one of two. A token without a label is ``None``, one of several is a set.
"""

# %%
# We hide a growing share of the labels, and train on what is left. The other way would be to throw away every sentence with a
# gap.
import matplotlib.pyplot as plt
import numpy as np

from partwise import SequenceLabeler
from partwise.datasets import make_tagged_sequences
from partwise.metrics import span_f1

X, y = make_tagged_sequences(200, seed=1, ambiguity=0.1)
X_test, y_test = make_tagged_sequences(200, seed=2, ambiguity=0.1)
rng = np.random.default_rng(0)
shares = [0.0, 0.15, 0.3, 0.45, 0.6]
partial, whole = [], []
for share in shares:
    gaps = [[None if rng.random() < share else label for label in labels] for labels in y]
    model = SequenceLabeler("crf", constraints="iob2").fit(X, gaps)
    partial.append(span_f1(y_test, model.predict(X_test)))
    full = [i for i, labels in enumerate(gaps) if None not in labels]
    few = SequenceLabeler("crf", constraints="iob2").fit([X[i] for i in full], [y[i] for i in full])
    whole.append(span_f1(y_test, few.predict(X_test)))
    print(f"{share:.0%} hidden: F1 {partial[-1]:.3f}; from the {len(full)} sentences without a gap {whole[-1]:.3f}")

# %%
figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
axis.plot(shares, partial, "o-", color="#3b76af", label="partial labels")
axis.plot(shares, whole, "s--", color="#c1551b", label="whole sentences alone")
axis.set(xlabel="share of labels that are hidden", ylabel="F1 of names", title="gaps cost little if the rest is used")
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)
plt.show()
