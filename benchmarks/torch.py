"""Layers for torch on the CPU, one thread: a CRF layer beside pytorch-crf (``pip install torch pytorch-crf``)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from benchmarks.race import Options
from benchmarks.report import Report, Row

SHAPES = ((32, 64, 9), (32, 64, 32))  # sequences, tokens, labels


def run(options: Options) -> Report:
    """Loss with gradients, and decoding, in turn; CPU milliseconds, medians of rounds."""
    import torch
    from torchcrf import CRF as Peer

    from partwise.torch import CRF

    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = []
    for B, T, L in SHAPES:
        emissions, tags = torch.randn(B, T, L, requires_grad=True), torch.randint(0, L, (B, T))
        ours, peer = CRF(L, batch_first=True), Peer(L, batch_first=True)
        peer.load_state_dict(ours.state_dict())

        def learn(layer: torch.nn.Module, emissions=emissions, tags=tags) -> None:
            (-layer(emissions, tags)).backward()

        def decode(layer: torch.nn.Module, emissions=emissions) -> None:
            layer.decode(emissions)

        for what, work in (("loss and gradients", learn), ("best labels", decode)):
            mine, theirs = in_turn(work, ours, peer, options.repeats)
            rows.append(Row(f"{B} x {T} x {L}", what, "ms", mine, theirs, "pytorch-crf"))
    return Report("torch", rows)


def in_turn(work: Callable, ours: object, peer: object, repeats: int, calls: int = 20) -> tuple[float, float]:
    """CPU milliseconds of a call, medians; compilation is warmed away."""
    times: dict[int, list[float]] = {0: [], 1: []}
    for layer in (ours, peer):
        work(layer)
    for _ in range(repeats):
        for which, layer in enumerate((ours, peer)):
            clock = time.process_time()
            for _ in range(calls):
                work(layer)
            times[which].append(1000 * (time.process_time() - clock) / calls)
    return statistics.median(times[0]), statistics.median(times[1])
