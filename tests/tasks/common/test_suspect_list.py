"""Lists of suspects."""

import io

import numpy as np
import pytest
from rich.console import Console

from partwise.tasks.common.suspect_list import Listed, Listing, found_among


def test_lists_of_suspects():
    rows = [Listed((i, 10 * i, 0.9 - i / 10, "a\tb", "X", "[Y]"), lambda i=i: {"example": i}) for i in range(3)]
    titles = ("example", "line", "probability", "text", "given", "believed")
    truth = found_among(np.array([True, False, True]), [0, 1], np.array([3.0, 2.0, 1.0]))
    assert truth == {"wrong": 2, "found": 1, "precision": 0.5, "recall": 0.5, "average_precision": pytest.approx(5 / 6)}
    about = {"loss": "ramp", "folds": 5, "expected": 2.2}
    listing = Listing(titles, rows, (7, "rows"), about, "in context", truth)
    first, second = listing.in_words()
    assert first == "3 of 7 rows are listed; about 2 of all are wrong (judged in 5 parts by models of the others, loss ramp)"
    assert second == "2 are wrong, 1 of them found: precision 50.00 %, recall 50.00 %, average precision 83.33 %"
    none = Listing(titles, [], (7, "rows"), about, truth=found_among(np.array([True, False]), [], np.zeros(2)))
    assert "precision -, recall 0.00 %" in none.in_words()[1]
    assert listing.as_text(1).decode() == "\t".join(titles) + "\n0\t0\t0.9\ta b\tX\t[Y]\n"
    assert Listing(titles, [], (7, "rows"), {}).as_text().decode() == "\t".join(titles) + "\n"
    where = io.StringIO()
    Console(file=where, width=80).print(listing.table(2))
    lines = [line.split() for line in where.getvalue().splitlines() if line.strip()]
    assert lines[0] == ["line", "wrong", "given", "believed", "in", "context"]
    assert lines[-2:] == [["0", "90.0", "%", "X", "[Y]", "a", "b"], ["10", "80.0", "%", "X", "[Y]", "a", "b"]]
