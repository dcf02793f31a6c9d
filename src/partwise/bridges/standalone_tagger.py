"""A trained tagger in one file: numpy is all that it needs.

    from tagger import predict
    predict([[("the", "DT"), ("dog", "NN")]])          # a model with templates: tokens are tuples of cells
    predict([[{"word": "the"}, {"word": "dog"}]])      # a model of attributes: dicts, or lists of strings
    predict([array])                                   # a model of matrices: (tokens, features)

As a program it labels a column file: ``python tagger.py < test.txt``.
"""

import base64
import io
import json
import re
import sys

import numpy as np

DATA = ""  # a zipped archive of arrays, in base64

LONGEST = 250  # characters of a cell that expressions look at
_RUN = re.compile(r"(.)\1+", re.DOTALL)


def _kind(c):
    return "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c


def _apply(name, argument, cell):
    """A function of the templates; None: no feature."""
    if name == "lower":
        return cell.lower()
    if name == "prefix":
        return cell[:argument] if len(cell) >= argument else None
    if name == "suffix":
        return cell[-argument:] if len(cell) >= argument else None
    if name in ("shape", "short_shape"):
        shape = "".join(map(_kind, cell))
        return shape if name == "shape" else _RUN.sub(r"\1", shape)
    return "" if getattr(re, name)(argument, cell[:LONGEST]) else None


class StandaloneTagger:
    """Viterbi search over weights: O(tokens x labels^2) time for a sequence."""

    def __init__(self, data):
        with np.load(io.BytesIO(base64.b64decode(data)), allow_pickle=False) as arrays:
            about = json.loads(bytes(arrays["about"]).decode())
            self.weights = arrays["weights"].astype(np.float64)  # (features, labels)
            self.transitions, self.start, self.stop = (
                arrays[name].astype(np.float64) for name in ("transitions", "start", "stop")
            )
        self.labels, self.tokens, self.templates = about["labels"], about["tokens"], about["templates"]
        self.number = {name: k for k, name in enumerate(about["names"])}

    def predict(self, X):
        """A list of labels for each sequence."""
        return [self.label(sequence) for sequence in X]

    def label(self, sequence):
        """The best labels of one sequence."""
        if len(sequence) == 0:
            return []
        score = self.scores(sequence)
        value, back = self.start + score[0], []
        for row in score[1:]:
            each = value[:, None] + self.transitions
            back.append(each.argmax(axis=0))
            value = each.max(axis=0) + row
        best = [int(np.argmax(value + self.stop))]
        for before in reversed(back):
            best.append(int(before[best[-1]]))
        return [self.labels[k] for k in reversed(best)]

    def scores(self, sequence):
        """A row for each token, a column for each label."""
        if self.tokens == "matrix":
            return np.asarray(sequence, np.float64) @ self.weights
        rows = np.zeros((len(sequence), len(self.labels)))
        for t in range(len(sequence)):
            for j, value in self.template_features(sequence, t) if self.tokens == "columns" else self.attributes(sequence[t]):
                if j is not None:
                    rows[t] += value * self.weights[j]
        return rows

    def attributes(self, token):
        """Numbers and values of what is known about a token."""
        if not hasattr(token, "items"):
            return [(self.number.get(name), 1.0) for name in token]
        found: list = []
        for name, item in token.items():
            self.put(name, item, found)
        return found

    def put(self, name, item, found):
        """An attribute, or those within it."""
        if isinstance(item, str):
            found.append((self.number.get(f"{name}:{item}"), 1.0))
        elif hasattr(item, "items"):
            for key, inner in item.items():
                self.put(f"{name}:{key}", inner, found)
        elif isinstance(item, (list, tuple, set, frozenset)):
            found += [(self.number.get(f"{name}:{one}"), 1.0) for one in item]
        else:
            found.append((self.number.get(name), float(item)))

    def template_features(self, sentence, t):
        """Numbers of the features that templates find at a token, each once."""
        found = set()
        for text, atoms, literals in self.templates:
            values, shown = [], []
            for column, functions, offset in atoms:
                value = self.cell(sentence, t + offset, column, functions, literals is not None)
                if value is None:
                    break
                values.append(value)
                if not functions or functions[-1][0] not in ("match", "search", "fullmatch", "start", "end"):
                    shown.append(value)
            else:
                if literals is None:
                    name = f"{text}={'|'.join(shown)}" if shown else text
                else:
                    name = "".join(a + b for a, b in zip(literals, [*values, ""]))  # noqa: B905 - literals end the name
                if name in self.number:
                    found.add(self.number[name])
        return [(j, 1.0) for j in found]

    def cell(self, sentence, t, column, functions, as_crfpp):
        """What a template sees of a place; None: nothing."""
        if column < 0:
            return "" if (t == 0 if functions[0][0] == "start" else t == len(sentence) - 1) else None
        if not 0 <= t < len(sentence):
            return None if not as_crfpp else f"_B{t}" if t < 0 else f"_B+{t - len(sentence) + 1}"
        value = sentence[t] if isinstance(sentence[t], str) else sentence[t][column]
        for name, argument in functions:
            value = _apply(name, argument, value)
            if value is None:
                return None
        return value


if DATA:
    predict = StandaloneTagger(DATA).predict


def main():
    """Columns from standard input, with one more to standard output."""
    for block in re.split(r"\n[ \t]*\n", sys.stdin.read().strip("\n")):
        lines = [line for line in block.splitlines() if line.strip()]
        for line, label in zip(lines, predict([[tuple(line.split()) for line in lines]])[0]):  # noqa: B905 - equally long
            print(line, label)
        print()


if __name__ == "__main__":
    main()
