"""Small column files that tests learn from: words whose chunk label depends on the word and on the label before."""

from __future__ import annotations

import numpy as np


def sentences(n=40, seed=0, longest=8) -> list[list[tuple[str, str, str]]]:
    """Sentences of (word, part of speech, chunk label in IOB2)."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        sentence: list[tuple[str, str, str]] = []
        before = "O"
        for _ in range(rng.integers(1, longest)):
            inside = before != "O"
            label = str(rng.choice(["I-" + before[2:], "O"] if inside else ["B-NP", "B-VP", "O"]))
            stem = {"B": "b", "I": "i", "O": "o"}[label[0]] + label[2:].lower()
            sentence.append((f"{stem}{rng.integers(4)}", "V" if "VP" in label else "N", label))
            before = label
        found.append(sentence)
    return found


def text(data, separator=" ", columns=slice(None)) -> str:
    """A column file."""
    return "".join("".join(separator.join(token[columns]) + "\n" for token in sentence) + "\n" for sentence in data)
