"""Made-up English with chunk labels: a corpus to practise on that comes with no licence and no download.

A small grammar writes sentences of noun, verb and prepositional phrases. Word forms are ambiguous (*plans* is a noun or a verb,
*fast* an adjective or an adverb), names are drawn from syllables so that many are seen once only, and one part of speech in ten
is wrong, as a bad tagger would get it: enough to make the task neither trivial nor hopeless.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

NOUNS = "board bank plan market share offer trade report deal rise price claim study rate order state profit group move".split()
VERBS = "plan offer trade report rise claim study rate order state move share buy sell keep find hold expect say call".split()
ADJECTIVES = "new large fast early late hard foreign strong weak likely".split()
ADVERBS = "fast early late hard soon sharply already still nearly widely".split()
PREPOSITIONS = "of in for with on from after by".split()
DETERMINERS = "the a this its some every".split()
PRONOUNS = "it they she he we".split()
SYLLABLES = "ka no ri del mo ta ver lin os bra chi um den sa per".split()
WRONG_TAGS = 0.1

Token = tuple[str, str, str]


class Writer:
    """Writes sentences; what comes next is drawn from `rng`."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng

    def pick(self, words: list[str]) -> str:
        """A word; the first ones are the frequent ones."""
        return words[int(len(words) * self.rng.random() ** 2)]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def name(self) -> str:
        return "".join(self.rng.choice(SYLLABLES) for _ in range(self.rng.integers(2, 5))).capitalize()

    def noun_phrase(self) -> list[Token]:
        if self.chance(0.15):
            words = [(self.pick(PRONOUNS), "PRP")]
        elif self.chance(0.3):
            words = [(self.name(), "NNP") for _ in range(self.rng.integers(1, 3))]
            if self.chance(0.3):
                words.append((str(self.rng.choice(["Corp.", "Inc.", "Co."])), "NNP"))
        else:
            words = [(self.pick(DETERMINERS), "DT")] if self.chance(0.7) else []
            words += [(self.pick(ADJECTIVES), "JJ") for _ in range(self.rng.integers(0, 2))]
            words += [(self.pick(NOUNS), "NN") for _ in range(self.rng.integers(1, 3))]
            if self.chance(0.3):
                words[-1] = (words[-1][0] + "s", "NNS")
        return chunk("NP", words)

    def verb_phrase(self) -> list[Token]:
        words = [("will", "MD")] if self.chance(0.3) else []
        words += [(self.pick(ADVERBS), "RB")] if words and self.chance(0.2) else []
        verb = self.pick(VERBS)
        words.append((verb, "VB") if words else (verb + "s", "VBZ"))
        if self.chance(0.25):
            words += [("to", "TO"), (self.pick(VERBS), "VB")]
        return chunk("VP", words)

    def sentence(self) -> list[Token]:
        """A clause, what it is about, and where and how."""
        tokens = self.noun_phrase() + self.verb_phrase()
        if self.chance(0.7):
            tokens += self.noun_phrase()
        for _ in range(self.rng.integers(0, 3)):
            tokens += chunk("PP", [(self.pick(PREPOSITIONS), "IN")]) + self.noun_phrase()
        if self.chance(0.25):
            tokens += chunk("ADVP", [(self.pick(ADVERBS), "RB")])
        tokens.append((".", ".", "O"))
        tags = [tag for _, tag, _ in tokens]
        return [(w, str(self.rng.choice(tags)) if self.chance(WRONG_TAGS) else tag, label) for w, tag, label in tokens]


def chunk(kind: str, words: list[tuple[str, str]]) -> list[Token]:
    """Words and their tags with IOB2 labels."""
    return [(word, tag, f"{'I' if k else 'B'}-{kind}") for k, (word, tag) in enumerate(words)]


def make_sentences(n_sentences: int = 500, seed: int = 0) -> list[list[Token]]:
    """Sentences of (word, part of speech, chunk label in IOB2).

    Parameters
    ----------
    n_sentences : int
    seed : int

    Examples
    --------
    >>> make_sentences(1, seed=3)[0][:2]
    [('it', 'PRP', 'B-NP'), ('studys', 'VBZ', 'B-VP')]
    """
    writer = Writer(np.random.default_rng(seed))
    return [writer.sentence() for _ in range(n_sentences)]


SIZES = (("train", 1000), ("dev", 200), ("test", 400))


def write_sentences(folder: Path, sizes: tuple[tuple[str, int], ...] = SIZES) -> list[Path]:
    """Column files ``train.txt``, ``dev.txt``, ``test.txt`` in `folder`; returns their paths.

    Parameters
    ----------
    folder : path
    sizes : pairs of a name and a number of sentences

    Examples
    --------
    >>> from pathlib import Path
    >>> [path.name for path in write_sentences(Path("."), (("train", 5), ("dev", 2)))]
    ['train.txt', 'dev.txt']
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for seed, (name, n) in enumerate(sizes):
        lines = ("".join(" ".join(token) + "\n" for token in sentence) for sentence in make_sentences(n, seed))
        paths.append(folder / f"{name}.txt")
        paths[-1].write_text("\n".join(lines) + "\n")
    return paths
