"""``partwise demo``: words of handwritten digits, read letter by letter, by a chain SVM, and by a chain CRF.

A hidden grammar says which digit may follow which. The three readers see the same noisy images; only the chains can learn the
grammar. All figures are for held-out words made of images that were not used for training. How much the chains gain depends on
the noise: its level was chosen so that single letters are hard but legible, C was not tuned.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from partwise.cli.common import in_words
from partwise.cli.typer_commands import from_function
from partwise.tasks.common.command_options import Refusal

SIZES = (25, 50, 100, 200, 400, 800)  # training words on the learning curve; the last one gives the table
TEST_WORDS = 500
NOISE = 0.35
C = 0.1

Words = tuple[list[np.ndarray], list[list[int]]]


@dataclass
class DigitReader:
    """One way to read words, and how well it does."""

    name: str
    loss: str
    is_chain: bool
    letters: list[float] = field(default_factory=list)  #: held-out accuracy per letter, for each of SIZES
    words: float = math.nan  #: per word, at the last size
    seconds: float = math.nan  #: to train, at the last size
    compiling: float = 0.0  #: what the very first fit took, for the smallest size
    result: Any = None  #: the SolveResult at the last size
    readings: list[list[int]] = field(default_factory=list)

    def fit_and_read(self, train: Words, test: Words, seed: int) -> list[list[int]]:
        """Train on some words, time it, and read others."""
        from partwise import Classifier, SequenceLabeler

        (X, y), (X_test, _) = train, test
        clock = time.perf_counter()
        model: Any
        if self.is_chain:
            model = SequenceLabeler(loss=self.loss, C=C, random_state=seed).fit(X, y)
        else:
            model = Classifier(loss=self.loss, C=C, random_state=seed).fit(np.vstack(X), np.concatenate(y))
        self.seconds = time.perf_counter() - clock
        self.result = model.result_
        if self.is_chain:
            return [[int(d) for d in word] for word in model.predict(X_test)]
        letters = model.predict(np.vstack(X_test))
        return [[int(d) for d in word] for word in np.split(letters, np.cumsum([len(x) for x in X_test])[:-1])]

    def to_json(self) -> dict[str, Any]:
        """What ``--json`` prints about this reader."""
        result = self.result
        numbers = {
            "letter_accuracy": self.letters[-1],
            "word_accuracy": self.words,
            "seconds": self.seconds,
            "first_fit_seconds": self.compiling,
            "primal": result.primal,
            "gap": result.gap,
        }
        return {
            "name": self.name,
            "loss": self.loss,
            "solver": result.solver.name,
            "epochs": result.n_epochs,
            "converged": result.converged,
            "learning_curve": dict(zip(map(str, SIZES), self.letters, strict=False)),
            **{key: value if math.isfinite(value) else None for key, value in numbers.items()},
        }


def readers() -> list[DigitReader]:
    """The three contestants."""
    return [
        DigitReader("single letters", "hinge", is_chain=False),
        DigitReader("chain SVM", "hinge", is_chain=True),
        DigitReader("chain CRF", "crf", is_chain=True),
    ]


def compete(contestants: list[DigitReader], seed: int, report=lambda text: None) -> Words:
    """Train every reader on growing sets of words and read the held-out ones; returns the held-out words."""
    from partwise.datasets import make_digit_words
    from partwise.metrics import sequence_accuracy, token_accuracy

    X, y = make_digit_words(SIZES[-1], seed, noise=NOISE)
    test = make_digit_words(TEST_WORDS, seed, noise=NOISE, part="test")
    for reader in contestants:
        for n in SIZES:
            report(f"{reader.name}: learning from {n} words")
            reader.readings = reader.fit_and_read((X[:n], y[:n]), test, seed)
            reader.letters.append(token_accuracy(test[1], reader.readings))
            if n == SIZES[0]:
                reader.compiling = reader.seconds
        reader.words = sequence_accuracy(test[1], reader.readings)
    return test


def most_telling_word(contestants: list[DigitReader], truth: list[list[int]]) -> int:
    """The word that the first reader gets most wrong among those the others read right (or nearly)."""
    mistakes = np.array(
        [[sum(a != b for a, b in zip(t, p, strict=True)) for t, p in zip(truth, r.readings, strict=True)] for r in contestants]
    )
    return int(np.argmax(mistakes[0] - 10 * mistakes[1:].sum(0)))


def table(contestants: list[DigitReader]) -> Any:
    """The results as a rich table."""
    from rich import box
    from rich.table import Table

    title = f"{TEST_WORDS} held-out words, none of their images seen in training"
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    shown.add_column("reader", no_wrap=True)
    for title in ("letters right", "words right", "train s", "epochs", "gap / primal"):
        shown.add_column(title, justify="right")
    shown.add_column("solver")
    for reader in contestants:
        result = reader.result
        gap = result.gap / result.primal if math.isfinite(result.gap) and result.primal else math.nan
        shown.add_row(
            reader.name,
            f"{100 * reader.letters[-1]:.1f} %",
            f"{100 * reader.words:.1f} %",
            f"{reader.seconds:.2f}",
            str(result.n_epochs),
            f"{gap:.1e}" if math.isfinite(gap) else "-",
            result.solver.name,
        )
    return shown


def write_practice(folder: Path, as_json: bool) -> None:
    """Made-up sentences with chunk labels, and what to do with them."""
    from partwise.datasets.sentences import write_sentences

    for name in ("train.txt", "dev.txt", "test.txt"):
        if (folder / name).exists():
            raise Refusal(f"{folder / name} is there already, and would be lost; choose another folder.")
    train, dev, test = write_sentences(folder)
    model = folder / "model"
    if as_json:
        print(json.dumps({"files": [str(train), str(dev), str(test)]}))
        return
    print(f"wrote {train}, {dev} and {test}: words, parts of speech, chunk labels. Try\n")
    print(f"    partwise train tag {train} --dev {dev} -o {model}\n    partwise evaluate {model} {test}")


def command() -> Any:
    """The verb."""
    return from_function("demo", demo)


@in_words
def demo(
    output: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("demo_output"),
    seed: Annotated[int, typer.Option(help="Of the words and the noise.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, the rest on stderr.")] = False,
    practice: Annotated[Path | None, typer.Option(help="Write column files to practise on into this folder, and stop.")] = None,
) -> None:
    """Words of handwritten digits, read letter by letter, by a chain SVM and by a chain CRF."""
    if practice is not None:
        write_practice(practice, as_json)
        return
    from rich.console import Console

    from partwise.cli import demo_pictures

    console = Console(stderr=as_json)
    clock = time.perf_counter()
    contestants = readers()
    with console.status("") as status:
        test = compete(contestants, seed, report=status.update)
    console.print(table(contestants))
    first = sum(max(r.compiling - r.seconds, 0.0) for r in contestants)
    if first > 1:
        console.print(f"Compiling took about {first:.0f} s; the compiled code is kept on disk, the next run starts at once.")
    i = most_telling_word(contestants, test[1])
    readings = [(r.name, r.readings[i]) for r in contestants]
    try:
        files = demo_pictures.save(output, SIZES, [(r.name, r.letters) for r in contestants], test[0][i], test[1][i], readings)
    except ImportError:
        files = []
        console.print('For pictures as PNG files install matplotlib: pip install "partwise\\[plot]". In letters:\n')
        text = demo_pictures.as_text(test[0][i], test[1][i], readings, console.width)
        console.print(text, highlight=False, markup=False)
    for file in files:
        console.print(f"wrote {file}")
    seconds = time.perf_counter() - clock
    console.print(f"{seconds:.1f} s in all", highlight=False)
    if as_json:
        print(
            json.dumps(
                {
                    "train_words": SIZES[-1],
                    "test_words": TEST_WORDS,
                    "readers": [r.to_json() for r in contestants],
                    "files": [str(f) for f in files],
                    "seconds": seconds,
                }
            )
        )
