"""From how many zeros on lists of weights are the quicker ones: `python -m benchmarks.weight_lists`.

Tokens of 20 features, drawn from 50,000 as words are (a few often, most rarely), scored against all labels by the loop that
tagging uses: an array of weights beside lists, in turn, medians of CPU seconds. Lists are used from one in sixteen on.
"""

from __future__ import annotations

import time

import numpy as np

from partwise.engine.compilation import compiled_loop
from partwise.features.rows import Binary, emit
from partwise.features.sparse_weights import SparseWeights, starts_of

FEATURES, TOKENS, PER_TOKEN, REPEAT = 50_000, 20_000, 20, 5


@compiled_loop
def emit_all(rows, w, width, out):
    """Scores of all tokens, one after the other in the same place."""
    for r in range(rows.ptr.size - 1):
        out[:] = 0.0
        emit(rows, r, w, width, out)


def main() -> None:
    """One line for each number of labels and share of weights that are not zero."""
    rng = np.random.default_rng(0)
    index = np.minimum(rng.pareto(0.4, TOKENS * PER_TOKEN) * 20, FEATURES - 1).astype(np.int32)
    rows = Binary(np.arange(0, len(index) + 1, PER_TOKEN), index, FEATURES)
    print("labels  not zero     array s   lists s   array / lists")
    for width in (24, 64, 457):
        for share in (1 / 64, 1 / 32, 1 / 16, 1 / 8):
            counts = np.full(FEATURES, max(1, round(width * share)))
            labels = np.concatenate([np.sort(rng.permutation(width)[:n]) for n in counts]).astype(np.uint16)
            values = rng.normal(size=len(labels)).astype(np.float32)
            lists = SparseWeights(starts_of(counts), labels, values, np.zeros(0, np.float32), width)
            both, seconds = (lists.dense(), lists), ([], [])  # type: ignore[var-annotated]
            for _ in range(REPEAT + 1):
                for w, found in zip(both, seconds, strict=True):
                    begun = time.process_time()
                    emit_all(rows, w, width, np.zeros(width, np.float32))
                    found.append(time.process_time() - begun)
            array, list_ = (float(np.median(found[1:])) for found in seconds)  # the first may have compiled
            print(f"{width:6d}  {counts[0] / width:8.3f}  {array:9.4f} {list_:9.4f}  {array / list_:8.2f}", flush=True)


if __name__ == "__main__":
    main()
