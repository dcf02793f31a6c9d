"""Distributions, losses and layers of `partwise.torch` with tensors of wrong shapes, types, strides, values, lengths and masks.

Left out where torch is not installed. Loops run in the interpreter, where an index beyond the end of an array is an error.
"""

from __future__ import annotations

import importlib.util
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import partwise
from partwise import interpret

SHOWN = (ValueError, TypeError, RuntimeError, MemoryError)  #: torch itself says much by RuntimeError
LOSSES = ("crf", "hinge", "softmax_margin", "perceptron", "ramp", "ramp_do", "soft_ramp", "family(beta=2, gamma=3)", "slack", "x")
WORDS = [[["a", "b"], ["b"]], [["c"]], []]
TAGS = [["X", "Y"], ["Z"], []]
ASKED = ("log_partition", "marginals", "argmax", "max", "entropy", "topk", "sample", "log_prob", "restricted", "repr")


def is_here() -> bool:
    """Whether there is torch."""
    found = importlib.util.find_spec("torch")
    return found is not None and found.origin is not None  # the folder tests/torch is none


class Layers:
    """A batch that is right but for a thing or two, and a few questions."""

    name = "layers"

    def prepare(self, folder: Path) -> None:
        import torch

        import partwise.torch as layers

        self.torch, self.layers = torch, layers
        torch.set_num_threads(1)
        self.kinds = [self.chain, self.segments, self.tree, self.spans, self.alignment, self.assignment, self.crf, self.crf]
        with interpret(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.labeler = partwise.SequenceLabeler("crf", solver="lbfgs", max_epochs=2).fit(WORDS, TAGS)

    def one(self, seed: int) -> str:
        rng = random.Random(seed)
        self.torch.manual_seed(seed)
        kind = self.kinds[seed % len(self.kinds)]
        with warnings.catch_warnings(), interpret(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                kind(rng)
            except SHOWN:
                return f"{kind.__name__}: refused"
        return f"{kind.__name__}: answered"

    # -- what is given ------------------------------------------------------------------------------------------------

    def tensor(self, rng: random.Random, *shape: int) -> Any:
        """Scores; one in four has something odd about it."""
        torch = self.torch
        found = torch.randn(*shape, dtype=rng.choice((torch.float32, torch.float32, torch.float64)))
        kind = rng.randrange(48)
        if kind == 0:
            found = torch.randn(*[max(0, n + rng.choice((0, 0, 1, -1))) for n in shape])
        elif kind == 1:
            found = found.unsqueeze(rng.randrange(len(shape) + 1)) if rng.random() < 0.5 else found.reshape(-1)
        elif kind == 2:
            types = (torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.uint8)
            found = found.to(rng.choice(types))
        elif kind in (3, 4, 5) and found.numel():
            odd = (float("nan"), float("inf"), -float("inf"), 1e30, 1e308)
            found.view(-1)[rng.randrange(found.numel())] = rng.choice(odd)
        elif kind == 6:
            found = torch.full(shape, rng.choice((-float("inf"), float("nan"), 0.0, 1e6)))
        elif kind == 7:
            found = found.transpose(0, -1).contiguous().transpose(0, -1)
        elif kind == 8 and shape[0]:
            found = found[:1].expand(shape)
        elif kind == 9:
            return rng.choice((None, found.tolist(), found.numpy(), found.to_sparse(), torch.empty(shape, device="meta"), 3.0))
        if isinstance(found, torch.Tensor) and found.is_floating_point() and rng.random() < 0.5:
            found = found.detach().requires_grad_()
        return found

    def numbers(self, rng: random.Random, low: int, high: int, *shape: int) -> Any:
        """Whole numbers from low to high; some beyond, or of another type or shape."""
        torch = self.torch
        found = torch.randint(low, max(high, low) + 1, shape)
        kind = rng.randrange(20)
        if kind < 3 and found.numel():
            far = (low - 1, high + 1, -1, -2, 2**31, -(2**63), 2**63 - 1)
            found.view(-1)[rng.randrange(found.numel())] = rng.choice(far)
        elif kind == 3:
            return rng.choice((found.float(), found.bool(), found.to(torch.int32), found.to(torch.uint8), found.tolist(), None))
        elif kind == 4:
            return rng.choice((found[..., None], found[:-1], found.reshape(-1)))
        return found

    def lengths(self, rng: random.Random, B: int, most: int) -> dict[str, Any]:
        """Lengths, a mask, or neither."""
        kind = rng.randrange(4)
        if kind == 0:
            return {}
        if kind == 1:
            mask = self.torch.arange(most)[None, :] < self.torch.randint(0, most + 1, (B, 1))
            return {"mask": mask if rng.random() < 0.8 else self.numbers(rng, 0, 1, B, most)}
        return {"lengths": self.numbers(rng, 0, most, B)}

    def ends(self, rng: random.Random, B: int, total: int) -> Any:
        """Where B examples begin that lie end to end, and the end; some beyond, or of another type or shape."""
        found = self.numbers(rng, 0, total, B + 1)
        if not isinstance(found, self.torch.Tensor) or found.dim() != 1 or not len(found):
            return found
        found = found.sort().values
        if rng.random() < 0.9:
            found[0], found[-1] = 0, total
        return found

    def laid(self, rng: random.Random, B: int, n: int) -> tuple[tuple[int, ...], dict[str, Any]]:
        """The first sizes of scores, and how long examples are: padded, or end to end."""
        if rng.random() < 0.7:
            return (B, n), {key: value for key, value in self.lengths(rng, B, n).items() if key == "lengths"}
        return (B * n,), {"cu_seqlens": self.ends(rng, B, B * n)}

    @staticmethod
    def sizes(rng: random.Random) -> tuple[int, int, int]:
        """Of a batch, of its examples, and of labels."""
        return rng.choice((0, 1, 2, 2, 3)), rng.choice((0, 1, 2, 3, 5)), rng.choice((1, 2, 3, 4))

    def longest(self, options: dict[str, Any], n: int) -> int:
        """The longest example, as far as that can be told."""
        ends = options.get("cu_seqlens")
        if not isinstance(ends, self.torch.Tensor) or ends.dim() != 1 or len(ends) < 2:
            return n
        return min(max(int(ends.diff().max()), 0), 20)

    # -- distributions ------------------------------------------------------------------------------------------------

    def chain(self, rng: random.Random) -> None:
        B, T, L = self.sizes(rng)
        moves = (L, L) if rng.random() < 0.6 else rng.choice(((B, L, L), (B, max(T - 1, 0), L, L)))
        ends = [self.tensor(rng, *rng.choice(((L,), (B, L)))) for _ in range(2)]
        given = [self.tensor(rng, B, T, L), self.tensor(rng, *moves), *ends]
        if rng.random() < 0.2:
            options = {"cu_seqlens": self.ends(rng, B, B * T)}
            given[0] = self.tensor(rng, B * T, L)
        else:
            options = self.lengths(rng, B, T)
        self.ask(rng, self.layers.LinearChain(*given[: rng.randint(1, 4)], **options), L, B, T)

    def segments(self, rng: random.Random) -> None:
        B, T, K = self.sizes(rng)
        given = [
            self.tensor(rng, B, T, rng.choice((0, 1, 2, 3, 7)), K),
            self.tensor(rng, K, K),
            *(self.tensor(rng, K) for _ in "ab"),
        ]
        options = self.lengths(rng, B, T)
        if rng.random() < 0.3:
            given[0], options = self.tensor(rng, B * T, rng.choice((1, 2, 3)), K), {"cu_seqlens": self.ends(rng, B, B * T)}
        self.ask(rng, self.layers.SemiMarkov(*given[: rng.randint(1, 4)], **options), 2 * K, B, T)

    def tree(self, rng: random.Random) -> None:
        B, n, L = self.sizes(rng)
        labels = (L,) if rng.random() < 0.5 else ()
        shape, options = self.laid(rng, B, n)
        options |= {"projective": rng.random() < 0.5, "single_root": rng.random() < 0.5}
        longest = self.longest(options, n)
        found = self.layers.DependencyTree(self.tensor(rng, *shape, longest + 1, *labels), **options)
        self.ask(rng, found, (n + 1) * (L if labels else 1), B, n)

    def spans(self, rng: random.Random) -> None:
        B, n, L = self.sizes(rng)
        labels = (L,) if rng.random() < 0.5 else ()
        shape, options = self.laid(rng, B, n)
        shape = (*shape, self.longest(options, n) + 1) if "cu_seqlens" in options else (B, n + 1, n + 1)
        found = self.layers.Constituency(self.tensor(rng, *shape, *labels), **options)
        self.ask(rng, found, (n + 1) * (L if labels else 1), B, max(2 * n - 1, 0))

    def alignment(self, rng: random.Random) -> None:
        B, n, m = self.sizes(rng)
        gaps = [rng.choice((0.5, (self.tensor(rng, B, n), self.tensor(rng, B, m)), self.tensor(rng, B), None)) for _ in range(4)]
        options: dict[str, Any] = {"local": rng.random() < 0.3}
        if rng.random() < 0.5:
            options["lengths"] = self.numbers(rng, 0, min(n, m), B, 2)
        match = self.tensor(rng, B, n, m)
        if rng.random() < 0.3:
            pair = [self.ends(rng, B, B * n), self.ends(rng, B, B * m)]
            options = {
                "local": options["local"],
                "cu_seqlens": pair if rng.random() < 0.9 else rng.choice((pair[:1], None, 3, pair[0])),
            }
            match = self.tensor(rng, B * n, self.longest({"cu_seqlens": pair[1]}, m))
        self.ask(rng, self.layers.Alignment(match, *gaps[: rng.randint(2, 4)], **options), m - 1, B, n)

    def assignment(self, rng: random.Random) -> None:
        B, n, m = self.sizes(rng)
        options = {"lengths": self.numbers(rng, 0, min(n, m), B, 2)} if rng.random() < 0.5 else {}
        found = self.layers.Assignment(self.tensor(rng, B, n, m + n), **options)
        self.ask(rng, found, m, B, n)

    def ask(self, rng: random.Random, found: Any, codes: int, B: int, width: int) -> None:
        """Some of its questions, and a loss with its gradient."""
        targets = self.numbers(rng, rng.choice((0, 0, -1)), codes - 1, B, width)
        for question in rng.sample(ASKED, 3):
            if question == "topk":
                found.topk(rng.choice((1, 2, 5, 0, -1)))
            elif question == "sample":
                found.sample(rng.choice((1, 3, 0)))
            elif question == "log_prob":
                found.log_prob(targets)
            elif question == "restricted":
                repr(found.restricted(self.numbers(rng, 0, 1, *found.tensors[0].shape) > 0).argmax)
            elif question == "repr":
                repr(found)
            else:
                getattr(found, question)
        cost = rng.choice((None, None, self.tensor(rng, codes, codes)))
        loss = self.layers.structured_loss(found, targets, rng.choice(LOSSES), cost=cost, reduction=rng.choice(("mean", "none")))
        if loss.requires_grad:
            loss.sum().backward()

    # -- the layer ----------------------------------------------------------------------------------------------------

    def crf(self, rng: random.Random) -> None:
        """Made, loaded from somebody's parameters, trained on and asked; or from a tagger, and back."""
        B, T, L = self.sizes(rng)
        if rng.random() < 0.2:
            layer, L = self.layers.CRF.from_labeler(self.labeler), len(self.labeler.classes_)
        else:
            constraints = rng.choice(((), (), [(0, L - 1)], [(None, 0)], [(0, 99)], [(-1, 0)], "iob2"))
            layer = self.layers.CRF(L, batch_first=rng.random() < 0.8, loss=rng.choice(LOSSES), constraints=constraints)
        state = {"start_transitions": (L,), "end_transitions": (L,), "transitions": (L, L)}
        if rng.random() < 0.5:
            layer.load_state_dict({name: self.tensor(rng, *shape) for name, shape in state.items()}, strict=rng.random() < 0.9)
        mask = self.lengths(rng, B, T).get("mask")
        emissions, tags = self.tensor(rng, B, T, L), self.numbers(rng, 0, L - 1, B, T)
        if rng.random() < 0.5:
            value = layer(emissions, tags, mask, reduction=rng.choice(("sum", "mean", "token_mean", "none", "x")))
            value.sum().backward()
        else:
            layer.decode(emissions, mask, *rng.choice(((), (), (1,), (3,), (0,))))
        if B and rng.random() < 0.2:
            classes = rng.choice((None, [f"L{k}" for k in range(L)], ["A"] * L, ["A"]))
            partwise.SequenceLabeler.from_torch(layer, classes).predict([emissions[0].detach().numpy()])
