"""What has been found so far, how far apart numbers are, how long work takes, and batches of chains."""

from __future__ import annotations

import json
import math
import statistics
import time
import traceback
from collections.abc import Callable
from pathlib import Path

SHAPES = {"A": (256, 128, 32), "B": (1024, 128, 64), "C": (64, 512, 128)}  # sequences, tokens, labels


class Run:
    """What has been found so far."""

    def __init__(self, folder: Path):
        self.folder, self.rows, self.checks, self.failures = folder, [], [], 0
        folder.mkdir(parents=True, exist_ok=True)
        self.log = (folder / "torch_gpu.log").open("w")
        self.began, self.part, self.parts, self.seen = time.time(), 0, 1, 0

    def say(self, text: str) -> None:
        print(text, flush=True)
        self.log.write(text + "\n")
        self.log.flush()

    def check(self, name: str, work: Callable[[], dict[str, tuple[float, float]]]) -> None:
        """Errors by name, each with the largest that is fine."""
        self.seen += 1
        if self.seen % self.parts != self.part:
            return
        clock = time.time()
        try:
            errors = work()
            fine = all(error <= limit for error, limit in errors.values())
            text = ", ".join(
                f"{k} {error:.1e}{'' if error <= limit else f' > {limit:.0e} !!'}" for k, (error, limit) in errors.items()
            )
        except Exception as error:
            self.log.write(traceback.format_exc() + "\n")
            fine, text, errors = False, first_line(error), {}
        self.failures += not fine
        self.checks.append({"name": name, "fine": fine, "errors": {k: e for k, (e, _) in errors.items()}, "text": text})
        self.say(f"{'ok  ' if fine else 'FAIL'} {name}: {text} ({time.time() - clock:.1f} s)")
        self.save()

    def time(self, shape: str, what: str, who: str, work: Callable[[], float | None], unit: str = "us") -> float | None:
        try:
            value = work()
        except Exception as error:
            self.log.write(traceback.format_exc() + "\n")
            self.say(f"FAIL {shape} {what} {who}: {first_line(error)}")
            value = None
        self.rows.append({"shape": shape, "what": what, "who": who, "unit": unit, "value": value})
        if value is not None:
            self.say(f"     {shape:14} {what:24} {who:22} {value:12.1f} {unit}")
        self.save()
        return value

    def save(self) -> None:
        (self.folder / "torch_gpu.json").write_text(json.dumps({"checks": self.checks, "figures": self.rows}, indent=1))


def first_line(error: Exception) -> str:
    """What an error says, in short."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:160] if text else ''}"


def apart(a, b) -> float:
    """The largest difference; infinite where only one of them is finite."""
    a, b = a.double(), b.double()
    same = (a == b) | (a.isnan() & b.isnan())
    difference = (a - b).abs()
    difference = difference.masked_fill(same, 0.0).nan_to_num(math.inf)
    return float(difference.max()) if difference.numel() else 0.0


def relative(a, b) -> float:
    """The same in units of the larger of 1 and b."""
    scale = b.double().abs().nan_to_num(posinf=1.0, neginf=1.0).clamp(min=1)
    return apart(a.double() / scale, b.double() / scale)


def twin(structure, tensors, lengths, sizes):
    """log Z and marginals by the plain twin in float64, on the same device."""
    import torch

    from partwise.torch import operators

    with torch.no_grad():
        doubled = [t.double() if t.is_floating_point() else t for t in tensors]
        return operators._sums_by_reference(structure, doubled, lengths, sizes)


def chain_batch(B, T, L, spread, seed=0, full=False, each=False, packed=False, dtype=None, device="cuda"):
    """Random scores of chains, their lengths and sizes."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    lengths = torch.full((B,), T) if full else torch.randint(0, T + 1, (B,), generator=generator)
    lengths[0] = T
    if not full and B > 3:
        lengths[1], lengths[2] = 1, 0
    rows = int(lengths.sum()) if packed else B * T
    begins = lengths.cumsum(0) - lengths if packed else torch.arange(B) * T
    n = B if each else 1
    scores = [torch.randn(shape, generator=generator) * spread for shape in ((rows, L), (n, L + 1, L), (n, L))]
    scores = [s.to(device, dtype) for s in scores]
    return [scores[0], begins.to(device), scores[1], scores[2]], lengths, [L, T, int(not packed)]


def events(work: Callable[[], object], repeats: int = 20, warm: int = 5, most: float = 15.0) -> float:
    """Microseconds by CUDA events, median."""
    import torch

    clock = time.time()
    for _ in range(warm):
        work()
        torch.cuda.synchronize()
        if time.time() - clock > most / 3:
            break
    times = []
    for _ in range(repeats):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        work()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b))
        if time.time() - clock > most:
            break
    return statistics.median(times) * 1e3


def graph(work: Callable[[int], object], sets: int) -> float:
    """Microseconds of a call in a CUDA graph that goes through all sets of inputs."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            for k in range(sets):
                work(k)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for k in range(sets):
            work(k)
    found = events(captured.replay) / sets
    del captured
    return found


def peak(work: Callable[[], object]) -> float:
    """MiB beyond what was there before."""
    import torch

    work()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20
