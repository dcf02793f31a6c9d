"""Plots that may stand in a page: nothing in them that a strict policy forbids, and ids of their own."""

import re

import pytest

from partwise.cli.report_plots import curve_plot, history_plots, reliability_plot
from partwise.tasks.common.model_report import reliability
from report_cases import HISTORY, POINTS

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install matplotlib")


def test_plots_are_plain_svg():
    plots = [*history_plots(HISTORY), curve_plot(POINTS), reliability_plot(reliability([0.9, 0.2], [True, False], "tokens"))]
    ids = [name for plot in plots for name in re.findall(r' id="([^"]+)"', plot)]
    assert len(plots) == 4 and len(ids) == len(set(ids))
    for plot in plots:
        assert plot.startswith("<svg") and not re.search(r"style|script|metadata|xlink|ns0|width=\"\d+pt", plot)
        assert 'role="img"' in plot and re.search(r"<title>[^<]+</title>", plot) and re.search(r"<text [^>]*font-size", plot)
        for name in re.findall(r'(?:href="|url\()#([^")]+)', plot):
            assert name in ids  # every link leads somewhere
    assert ">objective<" in plots[0] and ">f1 on held-out data, %<" in plots[1] and ">80<" in plots[2]
    assert len(history_plots({"metric": "f1", "epoch": [1, 2], "loss": [2.0, 1.0]})) == 1
