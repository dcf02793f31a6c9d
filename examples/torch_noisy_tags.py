"""Networks that learn to chunk text from labels of which many are wrong: a BiLSTM and a small transformer, with three losses.

python examples/torch_noisy_tags.py [epochs]

Needs PyTorch; the transformer, Hugging Face's transformers too. The first sentences of CoNLL-2000 are read if PARTWISE_DATA says
where they are, else sentences are generated. A third of the training sentences get random labels. Words enter as their part of
speech and their last letters, so that a few hundred sentences are enough.

Networks learn what is regular first and random labels by heart later. So the ramp loss, which lets go of sentences whose labels
nobody would expect, takes over from crf early, after the third pass; before, it would not know what to expect, and later all
labels are expected. Of every network that pass is kept which does best on a quarter of the training sentences, set aside with
their wrong labels: no clean label is used before the test.
"""

import copy
import os
import sys
import time

import torch
from torch import nn

from partwise.datasets import load_conll2000, make_sentences, plant_errors
from partwise.torch import CRF

LOSSES = ("crf", "hinge", "ramp")
SETTLED = 3  # passes after which the ramp loss takes over from crf


def sentences(n_train: int, n_test: int) -> tuple[list, list]:
    """Sentences of (word, part of speech, chunk)."""
    if os.environ.get("PARTWISE_DATA"):
        return load_conll2000("train")[:n_train], load_conll2000("test")[:n_test]
    return make_sentences(n_train, seed=1), make_sentences(n_test, seed=2)


class Words:
    """Numbers of what is known of a word, and of labels; 0 is padding, 1 what was never seen."""

    def __init__(self, sentences: list):
        self.tags = {name: k + 2 for k, name in enumerate(sorted({tag for s in sentences for _, tag, _ in s}))}
        self.ends = {name: k + 2 for k, name in enumerate(sorted({word[-2:] for s in sentences for word, _, _ in s}))}
        self.labels = sorted({label for s in sentences for _, _, label in s})

    def batch(self, sentences: list, labels: list) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Words (B, T, 2), labels (B, T) and the mask."""
        T = max(len(s) for s in sentences)
        x, y = torch.zeros(len(sentences), T, 2, dtype=torch.long), torch.zeros(len(sentences), T, dtype=torch.long)
        mask = torch.zeros(len(sentences), T, dtype=torch.bool)
        number = {name: k for k, name in enumerate(self.labels)}
        for i, (s, own) in enumerate(zip(sentences, labels, strict=True)):
            for t, (word, tag, _) in enumerate(s):
                x[i, t] = torch.tensor([self.tags.get(tag, 1), self.ends.get(word[-2:], 1)])
                y[i, t], mask[i, t] = number.get(own[t], 0), True
        return x, y, mask


class Embedding(nn.Module):
    """A vector for each word."""

    def __init__(self, words: Words, size: int):
        super().__init__()
        self.tags = nn.Embedding(len(words.tags) + 2, size, padding_idx=0)
        self.ends = nn.Embedding(len(words.ends) + 2, size, padding_idx=0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.tags(x[..., 0]) + self.ends(x[..., 1])


class BiLSTM(nn.Module):
    """A bidirectional LSTM with a CRF."""

    def __init__(self, words: Words, size: int = 32):
        super().__init__()
        self.embedding, self.lstm = Embedding(words, size), nn.LSTM(size, size, batch_first=True, bidirectional=True)
        self.linear, self.crf = nn.Linear(2 * size, len(words.labels)), CRF(len(words.labels), batch_first=True)

    def loss(self, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return -self.crf(self.linear(self.lstm(self.embedding(x))[0]), y, mask, reduction="token_mean")

    def decode(self, x: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
        return self.crf.decode(self.linear(self.lstm(self.embedding(x))[0]), mask)


class Transformer(nn.Module):
    """A token classifier of Hugging Face, randomly initialised, with a CRF."""

    def __init__(self, words: Words, size: int = 32):
        from transformers import BertConfig, BertForTokenClassification

        from partwise.torch.huggingface import with_crf

        super().__init__()
        config = BertConfig(
            vocab_size=1, hidden_size=size, num_hidden_layers=2, num_attention_heads=4, intermediate_size=2 * size,
            max_position_embeddings=512, hidden_dropout_prob=0.0, id2label=dict(enumerate(words.labels)),
        )  # fmt: skip
        self.embedding, self.model = Embedding(words, size), with_crf(BertForTokenClassification(config))

    @property
    def crf(self) -> CRF:
        return self.model.crf

    def loss(self, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        labels = y.masked_fill(~mask, -100)
        return self.model(inputs_embeds=self.embedding(x), attention_mask=mask.long(), labels=labels).loss

    def decode(self, x: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
        best = self.model(inputs_embeds=self.embedding(x), attention_mask=mask.long()).best
        return [y[m].tolist() for y, m in zip(best, mask, strict=True)]


def train(network: nn.Module, loss: str, batches: list, aside: list, epochs: int) -> None:
    """By Adam; the network is left as it was after the pass that did best on the sentences set aside."""
    adam = torch.optim.Adam(network.parameters(), lr=5e-3)
    best, kept = -1.0, {}
    for epoch in range(epochs):
        network.train()
        network.crf.loss = "crf" if loss == "ramp" and epoch < SETTLED else loss
        for k in torch.randperm(len(batches)).tolist():
            adam.zero_grad()
            network.loss(*batches[k]).backward()
            adam.step()
        found = accuracy(network, aside)
        if found > best:
            best, kept = found, copy.deepcopy(network.state_dict())
    network.load_state_dict(kept)


def accuracy(network: nn.Module, batches: list) -> float:
    """Of tokens."""
    network.eval()
    right = n = 0
    with torch.no_grad():
        for x, y, mask in batches:
            for best, gold, m in zip(network.decode(x, mask), y, mask, strict=True):
                right += int((torch.tensor(best) == gold[m]).sum())
                n += len(best)
    return right / n


def main(
    epochs: int = 12, n_train: int = 400, n_test: int = 300, noise: float = 1 / 3, size: int = 32, seeds: int = 3
) -> dict[str, dict[str, float]]:
    torch.manual_seed(0)
    learn, test = sentences(n_train, n_test)
    words = Words(learn)
    clean = [[label for *_, label in s] for s in learn]
    noisy = plant_errors(clean, noise, seed=0).y

    def batches(data: list, labels: list) -> list:
        return [words.batch(data[k : k + 16], labels[k : k + 16]) for k in range(0, len(data), 16)]

    n = len(learn) - len(learn) // 4
    given, aside = batches(learn[:n], noisy[:n]), batches(learn[n:], noisy[n:])
    held = batches(test, [[label for *_, label in s] for s in test])
    print(f"{len(learn)} sentences, {noise:.0%} of them with random labels; accuracy on {len(test)} others, {seeds} seeds")
    networks = {"BiLSTM": BiLSTM, "transformer": Transformer}
    found: dict[str, dict[str, float]] = {}
    for name, make in networks.items():
        found[name] = {}
        for loss in LOSSES:
            clock, values = time.perf_counter(), []
            for seed in range(seeds):
                torch.manual_seed(seed)
                try:
                    network = make(words, size)
                except ImportError:
                    break
                train(network, loss, given, aside, epochs)
                values.append(accuracy(network, held))
            if not values:
                print(f"{name:12} needs: pip install transformers")
                break
            found[name][loss] = sum(values) / len(values)
            each = " ".join(f"{value:.3f}" for value in values)
            print(f"{name:12} {loss:6} {found[name][loss]:.3f}   ({each})   {time.perf_counter() - clock:.0f} s", flush=True)
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
