"""Side-by-side timings with other tools: ``python -m benchmarks`` or ``make bench``."""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"  # one thread for everybody; here because it must come before numpy is imported
