"""
A sudoku as a factor graph
==========================

81 variables of nine states, and 27 rules of the kind "each digit once". A graph of hard constraints is written as it is said;
AD3 with branch and bound finds the answer, and proves that it is one.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from partwise import FactorGraph

PUZZLE = """
53..7.... 6..195... .98....6. 8...6...3 4..8.3..1 7...2...6 .6....28. ...419..5 ....8..79
""".split()
given = np.array([[int(c) if c.isdigit() else 0 for c in row] for row in PUZZLE])

# %%
# A bit for each cell and digit. What is given gets a high score; each cell has one digit, and each row, column and box has each
# once.
g = FactorGraph()
x = g.bits((9, 9, 9))
scores = np.zeros((9, 9, 9, 1))
for r, c in zip(*np.nonzero(given), strict=True):
    scores[r, c, given[r, c] - 1, 0] = 10.0
g.unary(x, scores)
for a in range(9):
    for b in range(9):
        g.xor(x[a, b])  # a cell: one digit
        g.xor(x[a, :, b])  # a row: each digit once
        g.xor(x[:, a, b])  # a column
        r, c = 3 * (a // 3), 3 * (a % 3)
        g.xor([x[r + i, c + j, b] for i in range(3) for j in range(3)])  # a box
answer = g.best("exact")
solved = answer.of(x).argmax(axis=2) + 1
print("proven:", answer.proven)
print(solved)

# %%
figure, axis = plt.subplots(figsize=(4.6, 4.6), layout="constrained")
for r in range(9):
    for c in range(9):
        colour = "black" if given[r, c] else "#3b76af"
        axis.text(c + 0.5, 8.5 - r, solved[r, c], ha="center", va="center", size=16, color=colour)
for k in range(10):
    axis.plot([k, k], [0, 9], color="0.2", lw=2 if k % 3 == 0 else 0.5)
    axis.plot([0, 9], [k, k], color="0.2", lw=2 if k % 3 == 0 else 0.5)
axis.set_axis_off()
axis.set_aspect("equal")
plt.show()
