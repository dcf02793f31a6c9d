"""Run one command and write down what it cost: ``python -I -S launch.py RESULT LIMIT OUT ERR command ...``.

A process of its own, and a small one, for two reasons: Linux's ru_maxrss starts from what the parent held when it forked, so the
parent must be smaller than whatever is measured; and `wait4` gives the CPU time of exactly this command and its children.
Past LIMIT seconds of wall time the command and its children are ended. RESULT becomes a JSON object.
"""

import json
import os
import signal
import sys
import time


class Late(Exception):
    """The limit was reached."""


def main() -> None:
    """Spawn, wait, write."""
    result, limit, out, err, *command = sys.argv[1:]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [(os.POSIX_SPAWN_OPEN, 1, out, flags, 0o644), (os.POSIX_SPAWN_OPEN, 2, err, flags, 0o644)]
    late = False

    def ring(*_):
        raise Late

    signal.signal(signal.SIGALRM, ring)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends us ends the command
    clock = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=files, setpgroup=0)
    try:
        signal.setitimer(signal.ITIMER_REAL, float(limit))
        _, status, usage = os.wait4(child, 0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    except (Late, KeyboardInterrupt) as why:
        late = isinstance(why, Late)
        os.killpg(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - clock
    peak = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e6 / 1024)  # bytes there, kibibytes elsewhere
    cost = {"cpu": usage.ru_utime + usage.ru_stime, "wall": wall, "peak_mb": peak}
    with open(result, "w") as f:
        json.dump({**cost, "status": os.waitstatus_to_exitcode(status), "late": late}, f)


if __name__ == "__main__":
    main()
