"""The objective, iteration by iteration: CRFsuite's L-BFGS and OWL-QN beside those of `partwise.crfsuite`.

    python -m benchmarks.crfsuite_curves spanish dutch wnut17 [--sentences N] [--c1 0.1 --c2 0.1] [--iterations 100]

Features and settings are those of sklearn-crfsuite's tutorial (entities of CoNLL-2002 Spanish, c1 = c2 = 0.1, all possible
transitions). CRFsuite leaves out weights of pairs of attribute and label that the training data never show, as there; with
``--dense`` it has them all, so that both solve the same problem. One line per set: the objective at some iterations, theirs and
ours, CPU seconds per iteration, and F1 of entities on the test part.
"""

from __future__ import annotations

import argparse
import gzip
import time
import warnings
from typing import Any

from partwise.files.corpora import data_folder
from partwise.metrics import f1_score

SETS = {
    "spanish": ("conll2002/esp.train.txt.gz", "conll2002/esp.testb.txt.gz"),
    "dutch": ("conll2002/ned.train.txt.gz", "conll2002/ned.testb.txt.gz"),
    "wnut17": ("wnut17/train.txt.gz", "wnut17/test.txt.gz"),
}
SHOWN = (10, 20, 30, 50, 75, 100, 150, 200, 300)


def read(name: str) -> list[list[list[str]]]:
    """Sentences of tokens of columns."""
    sentences: list[list[list[str]]] = [[]]
    with gzip.open(data_folder(name), "rt", encoding="utf-8") as lines:
        for line in lines:
            cells = line.rstrip("\n").split("\t" if "wnut" in name else " ")
            if cells == [""]:
                sentences.append([])
            elif cells[0] != "-DOCSTART-":
                sentences[-1].append(cells)
    return [sentence for sentence in sentences if sentence]


def attributes(sentence: list[list[str]], t: int) -> dict[str, Any]:
    """Those of the tutorial; where there are no parts of speech, without them."""
    word, tag = sentence[t][0], sentence[t][1] if len(sentence[t]) > 2 else ""
    found: dict[str, Any] = {"bias": 1.0, "word[-3:]": word[-3:], "word[-2:]": word[-2:], "word.isdigit()": word.isdigit()}
    for prefix, at in (("", t), ("-1:", t - 1), ("+1:", t + 1)):
        if not 0 <= at < len(sentence):
            found["BOS" if at < 0 else "EOS"] = True
            continue
        near, near_tag = sentence[at][0], sentence[at][1] if len(sentence[at]) > 2 else ""
        found |= {f"{prefix}word.lower()": near.lower(), f"{prefix}word.istitle()": near.istitle()}
        found[f"{prefix}word.isupper()"] = near.isupper()
        if tag:
            found |= {f"{prefix}postag": near_tag, f"{prefix}postag[:2]": near_tag[:2]}
    return found


def load(name: str, n: int | None) -> tuple[list[Any], list[list[str]]]:
    """Attributes and labels."""
    sentences = read(name)[:n]
    return [[attributes(s, t) for t in range(len(s))] for s in sentences], [[token[-1] for token in s] for s in sentences]


def curve(kind: Any, X: Any, y: Any, settings: dict[str, Any]) -> tuple[Any, list[float], float]:
    """The model, its objective after each iteration, and CPU seconds per iteration."""
    clock = time.process_time()
    model = kind(**settings).fit(X, y)
    seconds = time.process_time() - clock
    losses = [step["loss"] for step in model.training_log_.iterations if "loss" in step]
    return model, losses, seconds / max(len(losses), 1)


def compare(name: str, options: Any) -> None:
    """One set."""
    import sklearn_crfsuite

    from partwise.crfsuite import CRF

    train, test = SETS[name]
    (X, y), (X_test, y_test) = load(train, options.sentences), load(test, None)
    settings = {"algorithm": "lbfgs", "c1": options.c1, "c2": options.c2, "max_iterations": options.iterations}
    settings |= {"all_possible_transitions": True}
    CRF(**{**settings, "max_iterations": 2}).fit(X[:20], y[:20])  # compiles
    sides = {"CRFsuite": (sklearn_crfsuite.CRF, {**settings, "all_possible_states": options.dense}), "partwise": (CRF, settings)}
    for side, (kind, own) in sides.items():
        if options.only not in ("", side):
            continue
        model, losses, seconds = curve(kind, X, y, own)
        score = f1_score(y_test, list(model.predict(X_test)), zero_division=0)
        flat = [label for label in model.classes_ if label != "O"]
        from partwise.crfsuite.metrics import flat_f1_score

        tokens = flat_f1_score(y_test, list(model.predict(X_test)), average="weighted", labels=flat, zero_division=0)
        shown = "  ".join(f"{k}: {losses[k - 1]:.1f}" for k in SHOWN if k <= len(losses))
        print(
            f"{name} {len(X)} sentences, {side}: {shown}; last {len(losses)}: {losses[-1]:.1f}; "
            f"{model.training_log_.last_iteration['active_features']:,} weights; {seconds:.3f} s per iteration; "
            f"F1 of entities {100 * score:.2f}, of labels {100 * tokens:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crfsuite_curves", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*SETS, []], default=[], help="all by default")
    parser.add_argument("--sentences", type=int, help="only the first of the training part")
    parser.add_argument("--c1", type=float, default=0.1)
    parser.add_argument("--c2", type=float, default=0.1)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--dense", action="store_true", help="all possible states in CRFsuite, too")
    parser.add_argument("--only", choices=["", "CRFsuite", "partwise"], default="", help="one side only")
    chosen = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in chosen.names or SETS:
            compare(one, chosen)
