"""
Constraints: what may not happen does not
=========================================

``I-LOC`` never follows ``B-PER``. A model that is told so need not learn it, and never says otherwise.
"""

# %%
# With few sentences and five kinds of names, not every pair of labels has been seen.
import matplotlib.pyplot as plt

from partwise import SequenceLabeler
from partwise.datasets import make_tagged_sequences
from partwise.metrics import span_f1
from partwise.text.chunk_schemes import count_repairs

TYPES = ("PER", "LOC", "ORG", "DATE", "WORK")
X_test, y_test = make_tagged_sequences(300, seed=2, types=TYPES)
sizes = [10, 20, 40, 80, 160]
found = {"no constraints": [], 'constraints="iob2"': []}
broken = []
for n in sizes:
    X, y = make_tagged_sequences(n, seed=1, types=TYPES)
    for name, constraints in zip(found, (None, "iob2"), strict=True):
        answers = SequenceLabeler(constraints=constraints).fit(X, y).predict(X_test)
        found[name].append(span_f1(y_test, answers))
        if constraints is None:
            broken.append(count_repairs(answers, "iob2"))
print("impossible labels without constraints:", broken)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.4), layout="constrained")
for (name, values), style in zip(found.items(), ("s--", "o-"), strict=True):
    left.plot(sizes, values, style, label=name)
left.set(xscale="log", xlabel="sentences to learn from", ylabel="F1 of names", xticks=sizes, xticklabels=sizes)
left.legend(frameon=False)
right.bar([str(n) for n in sizes], broken, color="#c0392b")
right.set(xlabel="sentences to learn from", ylabel="impossible labels", title="without constraints")
plt.show()

# %%
# Any pair may be forbidden, and any set of followers forced: see :doc:`/estimators`.
model = SequenceLabeler(constraints=[("O", "I-PER"), (None, "I-PER")])
print(model)
