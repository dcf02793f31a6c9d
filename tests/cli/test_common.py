"""What all verbs share."""

import io

from rich.table import Table

from partwise.cli.common import show


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
