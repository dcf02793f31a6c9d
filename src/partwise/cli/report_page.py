"""The page of a report: one file that a browser opens from disk, without a server, a script or the network."""

from __future__ import annotations

import math
import re
from typing import Any

from partwise.cli.review_page import digest, part
from partwise.files.version import __version__
from partwise.tasks.common.command_options import Refusal, percent

PAGE = 8  # kinds of mistakes, or examples, before the reader has to ask for more
ROWS = 20  # of a table, likewise
SMALL = 10  # labels; a table of confusions of so many stands beside others
TALL = 480  # pixels; a drawing that is taller is made smaller
HEAT = 10  # shades


def made_report(report: Any, about: dict[str, Any]) -> bytes:
    """The page of a `ModelReport`; `about` says of which model and file, and how it was trained.

    Whatever comes from the data is escaped by the template; drawings are made by us, and escape what they show. There is no
    script in the page, its style is named by its digest, and nothing else may be loaded or run.
    """
    require_extra()
    import jinja2
    from markupsafe import Markup

    from partwise.cli.report_plots import curve_plot, history_plots, reliability_plot

    style = part("report.css")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"percent": percent, "cell": cell, "drawn": lambda text: Markup(drawn(text))}
    history, points = about["history"], about["points"]
    page = environment.from_string(part("report.html")).render(
        style=Markup(style),
        policy=f"default-src 'none'; style-src {digest(style)}; base-uri 'none'; form-action 'none'",
        report=report,
        about=about,
        version=__version__,
        page=PAGE,
        rows=ROWS,
        small=SMALL,
        heat=heat,
        bar=bar,
        scale=Scale(report.scores),
        calibration_plot=None if report.reliability is None else Markup(reliability_plot(report.reliability)),
        training_plots=[Markup(plot) for plot in history_plots(history)] if history and len(history["epoch"]) > 1 else [],
        curve_plot=Markup(curve_plot(points)) if points else None,
    )
    return page.encode("utf-8", "surrogatepass")


def require_extra() -> None:
    """Say what is missing before any work is done."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise Refusal(f"--html needs {error.name}: pip install 'partwise[html]'.") from None


def cell(value: Any) -> str:
    """A cell of a table: counts with commas, shares in per cent."""
    if isinstance(value, bool) or value is None:
        return "-" if value is None else str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return (f"{100 * value:.2f}" if math.isfinite(value) else "-") if isinstance(value, float) else str(value)


def heat(table: Any, row: int, column: int) -> str:
    """The shade of a cell of confusions: its share of what is true, right ones in another colour."""
    total = int(table.counts[row].sum())
    shade = math.ceil(HEAT * math.sqrt(int(table.counts[row, column]) / total)) if total else 0
    return f"{'good' if row == column else 'heat'}{shade}"


class Scale:
    """Of scores that are drawn: from a round number below all of them to 100 %."""

    def __init__(self, scores: Any):
        lowest = min((min(row.value, row.low) if row.low == row.low else row.value for row in scores), default=0.0)
        self.low = min(10 * math.floor(10 * lowest), 90) if lowest == lowest else 0

    def at(self, value: float) -> float:
        """Where a score is, of 100."""
        return round(100 * (100 * value - self.low) / (100 - self.low), 2)


def bar(value: float, largest: float) -> dict[str, str]:
    """A weight as a bar to the left or right of the middle: where it begins, and how wide it is, of 100."""
    width = 50 * abs(value) / largest if largest else 0.0
    return {"x": f"{50 - width if value < 0 else 50:.1f}", "width": f"{width:.1f}", "side": "against" if value < 0 else "for"}


def drawn(svg: str) -> str:
    """A drawing of a task, to stand in the page: in its ink where it has no colour of its own, and not too tall."""
    head, end, rest = svg.partition(">")
    width, height = (float(re.search(rf' {name}="([\d.]+)"', head)[1]) for name in ("width", "height"))  # type: ignore[index]
    scale = min(1.0, TALL / max(height, 1.0))
    size = f'width="{width * scale:.0f}" height="{height * scale:.0f}" viewBox="0 0 {width:g} {height:g}"'
    head = re.sub(r' (width|height)="[\d.]+"', "", head)
    return f'{head} class="drawing" role="img" fill="currentColor" {size}{end}{rest}'.strip()
