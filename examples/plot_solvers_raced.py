"""
Solvers raced to a gap
======================

The same problem, a structural SVM of chains, by six algorithms. Each has a lower bound of what can be reached; the distance between
its value and the best bound is a certificate, and the race ends where that is small.
"""

# %%
# Words of handwritten digits (scikit-learn's), strung together by a grammar: 150 sequences with 64 numbers for each image.
import matplotlib.pyplot as plt

from partwise import SOLVERS, chain_problem, solve
from partwise.datasets import make_digit_words

print(sorted(SOLVERS))
