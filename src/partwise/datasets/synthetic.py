"""Data made on the spot, from a seed: words of handwritten digits and tagged sentences with a hidden grammar."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

TEST_SHARE = 0.4  # of the images: no image serves both training and test
GRAMMAR_SEED = 2010


def digit_grammar() -> tuple[np.ndarray, np.ndarray]:
    """The hidden grammar of `make_digit_words`: start probabilities (10,) and transition probabilities (10, 10).

    Every digit has one preferred successor (probability 0.6), two others (0.25 and 0.15), and seven that never follow it. Each
    digit is the preferred successor of exactly one digit, so all of them are equally frequent in the long run. Words begin
    with one of four digits.

    Examples
    --------
    >>> start, transitions = digit_grammar()
    >>> start.shape, transitions.shape, transitions.max().item()
    ((10,), (10, 10), 0.6)
    """
    rng = np.random.default_rng(GRAMMAR_SEED)
    circle = rng.permutation(10)  # preferred successors form a ring through all digits, the others are further along it
    transitions = np.zeros((10, 10))
    for step, probability in ((1, 0.6), (4, 0.25), (7, 0.15)):
        transitions[circle, np.roll(circle, -step)] = probability
    start = np.zeros(10)
    start[rng.choice(10, 4, replace=False)] = 0.25
    return start, transitions


@functools.cache
def _digit_images() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.data / 16.0, digits.target.astype(int)


def make_digit_words(
    n_words: int = 300,
    seed: int = 0,
    *,
    noise: float = 0.35,
    part: str = "train",
    shortest: int = 4,
    longest: int = 9,
) -> tuple[list[np.ndarray], list[list[int]]]:
    """Words of handwritten digits: a few pixels per letter, and a grammar that says which digit may follow which.

    Letters are scikit-learn's 8 x 8 digit images; words are drawn from `digit_grammar`. Whoever reads letter by letter throws the
    grammar away; whoever reads words can learn it.

    Parameters
    ----------
    n_words : int
    seed : int
        Of the words, of the images drawn, and of the noise.
    noise : float
        Standard deviation of Gaussian noise added to each pixel (pixels are in [0, 1] and stay there).
    part : {"train", "test"}
        Which images to use: the two parts share the grammar but no image.
    shortest, longest : int
        Letters per word.

    Returns
    -------
    X : list of arrays (letters, 64)
        Pixels in [0, 1], row by row.
    y : list of lists of int
        The digits.

    Examples
    --------
    >>> X, y = make_digit_words(2, seed=0)
    >>> X[0].shape, y[0]
    ((7, 64), [6, 0, 3, 7, 8, 9, 3])
    """
    if part not in ("train", "test"):
        raise ValueError(f"The 'part' parameter of make_digit_words must be 'train' or 'test'. Got {part!r} instead.")
    images, digits = _digit_images()
    shuffled = np.random.default_rng(GRAMMAR_SEED).permutation(len(images))
    border = int(TEST_SHARE * len(images))
    mine = shuffled[:border] if part == "test" else shuffled[border:]
    pools = [mine[digits[mine] == d] for d in range(10)]
    start, transitions = digit_grammar()
    rng = np.random.default_rng((seed, part == "test"))
    X, y = [], []
    for _ in range(n_words):
        word = [int(rng.choice(10, p=start))]
        for _ in range(int(rng.integers(shortest, longest + 1)) - 1):
            word.append(int(rng.choice(10, p=transitions[word[-1]])))
        drawn = images[[rng.choice(pools[d]) for d in word]]
        X.append(np.clip(drawn + rng.normal(0.0, noise, drawn.shape), 0.0, 1.0) if noise else drawn)
        y.append(word)
    return X, y


def make_tagged_sequences(
    n_sequences: int = 100,
    seed: int = 0,
    *,
    types: tuple[str, ...] = ("PER", "LOC"),
    n_words: int = 40,
    ambiguity: float = 0.3,
    longest: int = 12,
    as_dicts: bool = False,
) -> tuple[list[list[Any]], list[list[str]]]:
    """Sentences with IOB2 labels from a small hidden Markov model, as attributes per token.

    Words of the common vocabulary say nothing about their label; only the labels around them do, so a model that knows
    transitions does better than one that does not.

    Parameters
    ----------
    n_sequences, seed : int
    types : tuple of str
        Kinds of spans; labels are ``O`` and ``B-type``, ``I-type`` for each.
    n_words : int
        Vocabulary of each label.
    ambiguity : float in [0, 1]
        Share of tokens whose word comes from a vocabulary common to all labels.
    longest : int
        Tokens per sentence, at least one.
    as_dicts : bool
        Attributes as dicts ``{name: value}`` (string, bool and real values) rather than lists of strings.

    Returns
    -------
    X : list of sentences; a sentence is a list of attribute lists or dicts, one per token
    y : list of lists of str

    Examples
    --------
    >>> X, y = make_tagged_sequences(1, seed=0)
    >>> len(X[0]) == len(y[0]), y[0][:3]
    (True, ['B-LOC', 'O', 'O'])
    """
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        sentence, labels = [], []
        label = "O"
        length = int(rng.integers(1, longest + 1))
        for t in range(length):
            kind = label.partition("-")[2]
            if kind and rng.random() < 0.6:
                label = f"I-{kind}"
            else:
                label = f"B-{rng.choice(types)}" if rng.random() < 0.3 else "O"
            common = rng.random() < ambiguity
            rank = int(n_words * rng.random() ** 2)  # a few words are frequent, many are rare
            word = f"any{rank}" if common else f"{label.lower()}{rank}"
            capital = bool(label != "O" and rng.random() < 0.8)
            sentence.append(_attributes(word, capital, t == 0, t == length - 1, as_dicts))
            labels.append(label)
        X.append(sentence)
        y.append(labels)
    return X, y


def _attributes(word: str, capital: bool, first: bool, last: bool, as_dicts: bool) -> Any:
    if as_dicts:
        return {"word": word, "capital": capital, "first": first, "last": last, "length": len(word) / 10}
    flags = {"capital": capital, "__BOS__": first, "__EOS__": last}
    return [f"word={word}", *(name for name, on in flags.items() if on)]
