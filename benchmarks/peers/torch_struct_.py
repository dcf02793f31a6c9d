"""torch-struct: marginals of non-projective trees by an inverse of a batch of Laplacians, on one CPU thread.

    python -m benchmarks.peers.torch_struct_ SCORES MARGINALS REPEATS

SCORES is an .npz file of arrays (batch, words, words + 1), scores of arcs from heads 0 (the root) .. n into words 1 .. n.
MARGINALS becomes one with the probabilities of arcs, trees having one word below the root, in 32 and in 64 bits. Printed is one
JSON object: for each array the seconds of a batch in each, the least of REPEATS calls.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
import torch
from torch_struct import NonProjectiveDependencyCRF


def main() -> None:
    """Read, measure, write."""
    source, target, repeats = sys.argv[1:]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found, seconds = {}, {}
    with np.load(source) as scores:
        for name in scores.files:
            seconds[name] = {}
            for bits in (32, 64):
                given = in_its_form(scores[name], bits)
                seconds[name][str(bits)] = min(timed(given) for _ in range(int(repeats)))
                found[f"{name}, {bits} bits"] = in_our_form(NonProjectiveDependencyCRF(given).marginals.numpy())
    np.savez(target, **found)
    print(json.dumps({"version": torch.__version__, "batch": seconds}))


def in_its_form(scores: np.ndarray, bits: int) -> torch.Tensor:
    """[head, word], and the arcs from the root on the diagonal."""
    arcs = np.swapaxes(scores[:, :, 1:], 1, 2).copy()
    n = arcs.shape[1]
    arcs[:, np.arange(n), np.arange(n)] = scores[:, :, 0]
    return torch.tensor(arcs, dtype=torch.float32 if bits == 32 else torch.float64)


def in_our_form(marginals: np.ndarray) -> np.ndarray:
    """[word, head], the root first."""
    batch, n, _ = marginals.shape
    found = np.zeros((batch, n, n + 1))
    found[:, :, 0] = marginals[:, np.arange(n), np.arange(n)]
    found[:, :, 1:] = np.swapaxes(marginals, 1, 2)
    found[:, np.arange(n), np.arange(1, n + 1)] = 0.0
    return found


def timed(given: torch.Tensor) -> float:
    """CPU seconds of one batch."""
    clock = time.process_time()
    NonProjectiveDependencyCRF(given).marginals  # noqa: B018 - computed when asked for
    return time.process_time() - clock


if __name__ == "__main__":
    main()
