"""Short RNA sequences whose structure is plain to see."""

from __future__ import annotations

import numpy as np


def hairpins(n=6, seed=0):
    """Short sequences whose structure is one helix of G and C around a loop of A and U."""
    rng = np.random.default_rng(seed)
    sequences, structures = [], []
    for _ in range(n):
        stem, loop = int(rng.integers(2, 4)), int(rng.integers(3, 5))
        left = "".join(rng.choice(list("GC"), stem))
        right = left[::-1].translate(str.maketrans("GC", "CG"))
        sequences.append("A" + left + "".join(rng.choice(list("AU"), loop)) + right)
        structures.append("." + "(" * stem + "." * loop + ")" * stem)
    return sequences, structures


def as_fasta(sequences, structures):
    """A title, a sequence and the dot-bracket below it."""
    rows = enumerate(zip(sequences, structures, strict=True))
    return "".join(f">rna{k}\n{sequence}\n{structure}\n" for k, (sequence, structure) in rows)
