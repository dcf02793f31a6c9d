"""What all verbs share."""

import io

import pytest
from rich.table import Table

from partwise.cli.clusters import cluster_client
from partwise.cli.common import in_words, show
from partwise.tasks.common.command_options import Refusal


def table(n, width=6):
    made = Table(box=None)
    for k in range(n):
        made.add_column(f"{k:0{width}d}", no_wrap=True)
    return made


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_people_are_shown_strings_tables_and_what_fits(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("NO_COLOR", raising=False)
    where, widths = io.StringIO(), []
    show(["a [b] line", table(3), lambda width: widths.append(width) or table(50)], where)
    lines = where.getvalue().splitlines()
    assert lines[0] == "a [b] line" and "000002" in lines[1]
    assert widths[0] > 1000 and "000049" in where.getvalue()  # a file has room for all of it
    terminal = Terminal()
    show([lambda width: widths.append(width) or "ok"], terminal)
    assert widths[1] == 40 and "ok" in terminal.getvalue()
    where = io.StringIO()
    show("plain", where)
    assert where.getvalue() == "plain\n"


@pytest.mark.parametrize("where", ["local[0]", "local[1001]", "local[99999999999999999999]"])
def test_clusters_of_a_size_that_no_machine_has(where):
    pytest.importorskip("distributed", reason="dask is not installed")
    with pytest.raises(Refusal, match=r"give a number of workers in the range \[1, 1000\]"), cluster_client(where):
        pass


def test_numbers_that_no_float_comes_near_end_in_words(capsys):
    @in_words
    def verb():
        float(10**400)

    with pytest.raises(SystemExit):
        verb()
    assert "partwise: error: int too large" in capsys.readouterr().err
