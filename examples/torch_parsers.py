"""Two parsers in a few lines each: biaffine scores of arcs with spanning trees, and scores of spans with binary trees.

python examples/torch_parsers.py [epochs]

Needs PyTorch. Sentences and their trees are generated. Dependency trees are made of constituents: the last word of a noun phrase,
and the first of any other one, is the head of the rest.
"""

import sys

import torch
from torch import nn

from partwise.datasets import make_brackets
from partwise.torch import Constituency, DependencyTree, structured_loss


class Reader(nn.Module):
    """Words as vectors, with what is around them: (B, n + 2, size), the first and the last being the ends of the sentence."""

    def __init__(self, n_words: int, size: int):
        super().__init__()
        self.embedding = nn.Embedding(n_words, size)
        self.lstm = nn.LSTM(size, size // 2, batch_first=True, bidirectional=True)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.lstm(self.embedding(words))[0]


class BiaffineParser(nn.Module):
    """Arc scores by a bilinear form of heads and dependents (Dozat and Manning 2017); trees may be of any shape."""

    def __init__(self, n_words: int, size: int = 64):
        super().__init__()
        self.reader = Reader(n_words, size)
        self.head, self.dependent = nn.Linear(size, size), nn.Linear(size, size)
        self.weight = nn.Parameter(torch.zeros(size + 1, size))

    def forward(self, words: torch.Tensor, lengths: torch.Tensor) -> DependencyTree:
        states = self.reader(words)[:, :-1]  # the beginning stands for the root
        heads, dependents = self.head(states).relu(), self.dependent(states[:, 1:]).relu()
        dependents = nn.functional.pad(dependents, (0, 1), value=1.0)  # a score of the head alone, too
        return DependencyTree(dependents @ self.weight @ heads.transpose(1, 2), lengths=lengths)


class SpanParser(nn.Module):
    """Span scores from differences of states at both ends (Stern et al. 2017); label 0 is for spans that are no constituents."""

    def __init__(self, n_words: int, n_labels: int, size: int = 64):
        super().__init__()
        self.reader = Reader(n_words, size)
        self.scores = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, n_labels))

    def forward(self, words: torch.Tensor, lengths: torch.Tensor) -> Constituency:
        forward, backward = self.reader(words).chunk(2, -1)
        places = torch.cat([forward[:, :-1], backward[:, 1:]], -1)  # what was read before and after each place between words
        scores = self.scores(places[:, None] - places[:, :, None])
        return Constituency(torch.cat([torch.zeros_like(scores[..., :1]), scores[..., 1:]], -1), lengths=lengths)


def heads_of(tree, begin: int = 0, above: int = 0, found: dict[int, int] | None = None) -> dict[int, int]:
    """The head of each word, numbered from one."""
    found = {} if found is None else found
    if tree.is_word:
        found[begin] = above
        return found
    begins = [begin]
    for child in tree.children:
        begins.append(begins[-1] + len(child.words()))
    main = len(tree.children) - 1 if tree.label == "NP" and tree.children[-1].is_word else 0
    head = head_word(tree.children[main], begins[main])
    for k, child in enumerate(tree.children):
        heads_of(child, begins[k], above if k == main else head + 1, found)
    return found


def head_word(tree, begin: int) -> int:
    while not tree.is_word:
        last = tree.label == "NP" and tree.children[-1].is_word
        begin += sum(len(child.words()) for child in tree.children[:-1]) if last else 0
        tree = tree.children[-1] if last else tree.children[0]
    return begin


class Data:
    """Sentences as tensors, in batches."""

    def __init__(self, trees: list, words: dict[str, int], labels: list[str]):
        self.trees, self.lengths = trees, torch.tensor([len(tree.words()) for tree in trees])
        n = int(self.lengths.max())
        self.words = torch.zeros(len(trees), n + 2, dtype=torch.long)
        self.heads = torch.zeros(len(trees), n, dtype=torch.long)
        self.spans = torch.zeros(len(trees), n + 1, n + 1, dtype=torch.long)  # label of each, 0 for none
        for i, tree in enumerate(trees):
            self.words[i, : len(tree.words()) + 2] = torch.tensor([1, *(words.get(word, 3) for word in tree.words()), 2])
            for word, head in heads_of(tree).items():
                self.heads[i, word] = head
            for label, begin, end in tree.spans():
                self.spans[i, begin, end] = labels.index(label)

    def batches(self, size: int = 16):
        for some in torch.arange(len(self.trees)).split(size):
            n = int(self.lengths[some].max())
            yield self.words[some, : n + 2], self.lengths[some], self.heads[some, :n], self.spans[some, : n + 1, : n + 1]


def main(epochs: int = 5, n_train: int = 300, n_test: int = 100) -> dict[str, float]:
    torch.manual_seed(0)
    learn, test = make_brackets(n_train, "english", seed=1), make_brackets(n_test, "english", seed=2)
    words = {word: k + 4 for k, word in enumerate(sorted({word for tree in learn for word in tree.words()}))}
    labels = ["", *sorted({label for tree in learn for label, *_ in tree.spans()})]
    given, held = Data(learn, words, labels), Data(test, words, labels)
    biaffine, span = BiaffineParser(len(words) + 4), SpanParser(len(words) + 4, len(labels))
    adam = torch.optim.Adam([*biaffine.parameters(), *span.parameters()], lr=5e-3)
    for _ in range(epochs):
        for x, lengths, heads, spans in given.batches():
            adam.zero_grad()
            structured_loss(biaffine(x, lengths), heads, "hinge").backward()
            tree = span(x, lengths)
            structured_loss(tree, tree.trees_with(spans), "crf").backward()
            adam.step()
    right = n = both = answered = there = 0
    with torch.no_grad():
        for x, lengths, heads, spans in held.batches():
            inside = torch.arange(heads.shape[1]) < lengths[:, None]
            right, n = right + int((biaffine(x, lengths).argmax == heads)[inside].sum()), n + int(lengths.sum())
            tree = span(x, lengths)
            for i, (begins, ends, found) in enumerate(zip(*tree.spans_of(tree.argmax), strict=True)):
                size = 2 * int(lengths[i]) - 1
                guess = {(b, e, c) for b, e, c in torch.stack([begins, ends, found], 1)[:size].tolist() if c}
                gold = {(b, e, int(spans[i, b, e])) for b, e in spans[i].nonzero().tolist()}
                both, answered, there = both + len(guess & gold), answered + len(guess), there + len(gold)
    scores = {"heads": right / n, "brackets": 2 * both / (answered + there)}
    print(f"right heads {scores['heads']:.3f}, F1 of labelled brackets {scores['brackets']:.3f}")
    return scores


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
