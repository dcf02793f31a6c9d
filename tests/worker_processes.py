"""A cluster whose workers are processes of a test: it kills them, and starts others."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent  #: where workers find the functions of tests


class Workers:
    """Processes of one thread each, without a nanny."""

    def __init__(self, address, preload=None):
        self.address, self.preload, self.running, self.killed = address, preload, [], 0

    def start(self, n=1):
        more = [] if self.preload is None else ["--preload", str(self.preload)]
        command = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny", *more]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": ROOT}
        self.running += [subprocess.Popen([*command, "--no-dashboard", "--death-timeout", "60"], **quiet) for _ in range(n)]

    def kill(self, k=0):
        """Kill one of them at once."""
        process = self.running.pop(k)
        process.kill()
        process.wait()
        self.killed += 1

    def kill_all(self):
        while self.running:
            self.kill()

    def revive(self):
        """Start as many as have ended by themselves."""
        ended = [process for process in self.running if process.poll() is not None]
        self.running = [process for process in self.running if process.poll() is None]
        self.start(len(ended))


@contextlib.contextmanager
def cluster_of(n, preload=None):
    """A client, and `n` workers."""
    import distributed

    how = {"n_workers": 0, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(**how) as cluster, distributed.Client(cluster) as client:
        workers = Workers(cluster.scheduler_address, preload)
        try:
            workers.start(n)
            client.wait_for_workers(n, timeout=120)
            yield client, workers
        finally:
            workers.kill_all()


@contextlib.contextmanager
def scheduler_process(path):
    """The address of a scheduler that is a process, and the process."""
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": ROOT}
    process = subprocess.Popen([*command, "--scheduler-file", str(path)], **quiet)
    try:
        until = time.monotonic() + 120
        while not path.exists() or not path.read_text():
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        time.sleep(0.2)  # it is written in one go, but not at once
        yield json.loads(path.read_text())["address"], process
    finally:
        process.kill()
        process.wait()
