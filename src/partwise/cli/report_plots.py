"""Plots of a report, as SVG that stands in a page: without styles or scripts of its own, in the colours of the page.

matplotlib writes colours and fonts into ``style`` attributes, which the policy of the page forbids. They become attributes of
their own, which the style of the page may overrule: what is black there is ink in light and in dark.
"""

from __future__ import annotations

import io
import re
from typing import Any
from xml.etree import ElementTree

from partwise.tasks.common.plots import new_figure

SVG, LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
INK, ACCENT, SOFT, GOOD = "#000000", "#1f5fa8", "#6b6963", "#22703c"  #: as review.css and report.css have them, in light
WIDTH, HEIGHT = 5.2, 3.4  # inches
#: what may be said of a shape without a style
ATTRIBUTES = {"fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin"}
ATTRIBUTES |= {"fill-opacity", "stroke-opacity", "opacity", "text-anchor", "clip-path"}


def reliability_plot(found: Any) -> str:
    """How often answers of some probability are right; bars show where answers are."""
    figure = new_figure(WIDTH, HEIGHT)
    axes = figure.subplots()
    n = sum(one.n for one in found.bins)
    for one in found.bins:
        axes.bar(one.low, one.n / n, one.high - one.low, align="edge", color=SOFT, alpha=0.3, linewidth=0)
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle="--")
    axes.plot([one.confidence for one in found.bins], [one.right for one in found.bins], color=ACCENT, marker="o")
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="probability of the answer", ylabel=f"share of {found.unit}")
    return as_svg(figure, "calibration", "Share of right answers by their probability")


def history_plots(history: dict[str, Any]) -> list[str]:
    """The training, epoch by epoch: the objective and its bound or the loss, and the score on held-out data."""
    made = []
    names = {"primal": "objective", "dual": "lower bound"}
    certified = [name for name in names if known(history.get(name)) > 1]
    figure = new_figure(WIDTH, HEIGHT)
    axes = figure.subplots()
    for name, colour in zip(certified if "primal" in certified else ["loss"], (ACCENT, SOFT), strict=False):
        axes.plot(*pairs(history, name), color=colour, marker=".", label=names.get(name, "training loss"))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="epoch", ylabel="objective" if "primal" in certified else "training loss, as seen on the way")
    if len(axes.lines) > 1:
        axes.legend(frameon=False)
    made.append(as_svg(figure, "training", "What was minimised, epoch by epoch"))
    if known(history.get("dev")):
        figure = new_figure(WIDTH, HEIGHT)
        axes = figure.subplots()
        epochs, values = pairs(history, "dev")
        axes.plot(epochs, [100 * value for value in values], color=GOOD, marker=".")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set(xlabel="epoch", ylabel=f"{history['metric']} on held-out data, %")
        made.append(as_svg(figure, "held-out", "The score on held-out data, epoch by epoch"))
    return made


def curve_plot(points: list[dict[str, Any]]) -> str:
    """The score by the number of examples that were learnt from."""
    figure = new_figure(WIDTH, HEIGHT)
    axes = figure.subplots()
    counts = [point["examples"] for point in points]
    axes.plot(counts, [100 * point["value"] for point in points], color=ACCENT, marker="o")
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [f"{n:,}" for n in counts])
    axes.set(xlabel="examples to learn from", ylabel=f"{points[0]['measure']}, %")
    return as_svg(figure, "curve", "The score by the number of examples")


def known(values: list[Any] | None) -> int:
    """How many numbers there are."""
    return sum(value is not None for value in values or ())


def pairs(history: dict[str, Any], name: str) -> tuple[list[int], list[float]]:
    """Epochs and numbers, where there are any."""
    both = [(epoch, value) for epoch, value in zip(history["epoch"], history[name], strict=True) if value is not None]
    return [epoch for epoch, _ in both], [value for _, value in both]


def as_svg(figure: Any, name: str, title: str) -> str:
    """A figure as an element of a page: `name` makes its ids its own, `title` is what a screen reader says."""
    import matplotlib

    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    content = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(content, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(content.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        clean(element, name)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.attrib |= {"class": "plot", "role": "img", "fill": "currentColor", "stroke-linejoin": "round"}
    about = ElementTree.Element(f"{{{SVG}}}title")
    about.text = title
    root.insert(0, about)
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def clean(element: ElementTree.Element, name: str) -> None:
    """Ids of the page's own, links to them, and attributes instead of a style."""
    if "id" in element.attrib:
        element.set("id", f"{name}-{element.get('id')}")
    if LINK in element.attrib:
        element.set("href", "#" + f"{name}-{element.attrib.pop(LINK)[1:]}")
    style = dict(part.split(":", 1) for part in element.attrib.pop("style", "").split(";") if ":" in part)
    for key, value in style.items():
        if key.strip() in ATTRIBUTES:
            element.set(key.strip(), value.strip())
    if element.tag == f"{{{SVG}}}text":
        size = re.search(r"([\d.]+)px", " ".join(style.values()))
        element.set("font-size", size[1] if size else "10")
    if "clip-path" in element.attrib:
        element.set("clip-path", element.attrib["clip-path"].replace("url(#", f"url(#{name}-"))
