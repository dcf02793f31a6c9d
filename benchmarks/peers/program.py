"""What the programs of all contenders share: the command line, and saying where the time went.

::

    python -m benchmarks.peers.NAME train FILE MODEL [--features words] [--set name=value ...] [--stream]
    python -m benchmarks.peers.NAME tag MODEL FILE OUT [--features words]
    python -m benchmarks.peers.NAME curve FILE TEST FOLDER --points 1,2,4,8 [--set name=value ...]

Column files have the label in their last column; `tag` writes the same text with one more column. Each prints one JSON object:
CPU and wall seconds by stage, and whatever else there is to say.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from typing import Any

Verb = Callable[[argparse.Namespace, "Stages"], dict[str, Any]]


class Stages:
    """A stopwatch with named stages; what a process spent before its first stage, on imports mostly, is called ``start``."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = {"start": time.process_time()}
        self.wall: dict[str, float] = {}
        self.pause()

    def pause(self) -> None:
        """What was spent since the last call belongs to nobody (evaluation, say)."""
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def done(self, stage: str) -> float:
        """What was spent since the last call belongs to `stage`; returns these CPU seconds."""
        cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
        self.cpu[stage] = self.cpu.get(stage, 0.0) + cpu
        self.wall[stage] = self.wall.get(stage, 0.0) + wall
        self.pause()
        return cpu

    @property
    def total(self) -> float:
        """CPU seconds of all stages so far."""
        return sum(self.cpu.values())


def program(description: str | None, **verbs: Verb) -> None:
    """Read the command line, do what it says, print the stages."""
    stages = Stages()
    gc.disable()  # while large lists are built, collecting garbage only costs time; for everybody
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="verb", required=True)
    places = {"train": ("file", "model"), "tag": ("model", "file", "out"), "curve": ("file", "test", "folder")}
    for verb in verbs:
        command = commands.add_parser(verb)
        for place in places[verb]:
            command.add_argument(place)
        command.add_argument("--features", default="chunking", help="which attributes: chunking or words")
        command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the tool")
        command.add_argument("--stream", action="store_true", help="keep no attributes longer than needed, where the tool can")
        command.add_argument("--points", default="1,2,4,8,16", help="after how many epochs to look")
    options = parser.parse_args()
    options.set = dict(pair.split("=", 1) for pair in options.set)
    more = verbs[options.verb](options, stages)
    print(json.dumps({"cpu": stages.cpu, "seconds": stages.wall, **more}))
