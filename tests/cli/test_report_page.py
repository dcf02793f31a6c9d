"""The page of a report, in a real browser."""

import sys

import pytest
from typer.testing import CliRunner

from browser import chromium, colours, press, resize
from partwise.cli.app import app
from partwise.cli.report_page import Scale, cell, drawn, heat
from partwise.tasks.common.model_report import ConfusionTable, ModelReport, ScoreRow
from report_cases import IMAGE, QUOTES, SCRIPT, hostile_report, write_report

pytest.importorskip("jinja2", reason="jinja2 is not installed: pip install jinja2")
pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install matplotlib")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """One for all tests."""
    with chromium(tmp_path_factory.mktemp("downloads")) as driver:
        yield driver


@pytest.fixture
def driver(browser):
    """The browser, as new; nothing may be complained of."""
    browser.get("about:blank")
    resize(browser, 1280, 900)
    colours(browser, "light")
    yield browser
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def texts(driver, selector):
    return driver.execute_script("return [...document.querySelectorAll(arguments[0])].map(one => one.textContent)", selector)


def test_all_is_shown_and_nothing_runs(driver, tmp_path):
    """The quick one: data that try to be HTML, in every place that a report has."""
    page = write_report(tmp_path / f"{SCRIPT.replace('/', '')}.html", hostile_report())
    driver.get(page.as_uri())
    assert driver.title == f"m {SCRIPT} on f {IMAGE}"
    assert not driver.find_elements("css selector", "script, img, iframe, body style")
    assert driver.find_element("tag name", "h1").text == f"m {SCRIPT} on f {IMAGE}"
    assert SCRIPT in texts(driver, "#labels tbody th") and IMAGE in texts(driver, "#confusion tbody th")
    assert QUOTES in texts(driver, "#confusion thead th") and "1,200" in texts(driver, "#labels td")
    assert texts(driver, "#mistakes > details > summary b")[:2] == [SCRIPT, f"{IMAGE}0"]
    assert [SCRIPT, IMAGE, "שלום"] == texts(driver, "#worst .form")[:3]
    assert texts(driver, "#worst .wrong .label")[:2] == [f"true {QUOTES}", f"answered {SCRIPT}"]
    drawn_words = texts(driver, '#worst .drawing [fill="#222"] text')
    assert drawn_words[:3] == [SCRIPT, QUOTES, "日本語"] and IMAGE in texts(driver, "#worst .drawing text")
    seen = "return [...document.querySelectorAll('#worst > .example .drawing')].map(one => one.parentElement.clientWidth)"
    assert min(driver.execute_script(seen)) > 50  # and there is room for them
    for selector in ("#weights tbody th", "#model dd", ".notes li"):
        assert IMAGE in texts(driver, selector)
    assert len(driver.find_elements("css selector", "svg.plot")) == 4 and "f1 on held-out data, %" in texts(driver, ".plot text")
    ids = driver.execute_script("return [...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))


def test_without_the_extra(tmp_path, monkeypatch):
    for missing in ("jinja2", "matplotlib"):
        with monkeypatch.context() as now:
            now.setitem(sys.modules, missing, None)
            result = CliRunner().invoke(app, ["report", "no-model", "no-file", "--html", str(tmp_path / "page.html")])
        assert result.exit_code == 1 and f"--html needs {missing}: pip install 'partwise[html]'" in result.stderr
    assert not (tmp_path / "page.html").exists()


def test_cells_shades_scales_and_drawings():
    assert [cell(value) for value in (1234, 0.5, float("nan"), None, "a<b")] == ["1,234", "50.00", "-", "-", "a<b"]
    import numpy as np

    table = ConfusionTable(["a", "b"], np.array([[99, 1], [0, 0]]), "rows")
    assert [heat(table, 0, 0), heat(table, 0, 1), heat(table, 1, 0)] == ["good10", "heat1", "heat0"]
    scale = Scale([ScoreRow("a", "", 0.95, 0.86, 0.99), ScoreRow("b", "", 0.9)])
    assert scale.low == 80 and scale.at(0.9) == 50.0 and Scale([ScoreRow("a", "", 1.0)]).low == 90
    assert Scale([ScoreRow("a", "", float("nan"))]).low == 0
    made = drawn('<svg xmlns="x" width="100" height="960" font-size="13"><rect width="7" height="8"/></svg>\n')
    assert 'width="50" height="480" viewBox="0 0 100 960"' in made and '<rect width="7" height="8"/>' in made


@pytest.mark.slow
def test_narrow_and_dark_and_by_keyboard(driver, tmp_path):
    from selenium.webdriver.common.keys import Keys

    driver.get(write_report(tmp_path / "page.html", hostile_report()).as_uri())
    press(driver, Keys.TAB)
    link = driver.switch_to.active_element
    assert link.text == "Skip to the scores" and link.rect["x"] >= 0
    outline = driver.execute_script("return getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "2px"
    press(driver, Keys.ENTER)
    assert driver.current_url.endswith("#scores")
    kinds = driver.find_elements("css selector", "#mistakes > details")
    assert [bool(one.get_attribute("open")) for one in kinds] == [True] + [False] * 8 and "12 more kinds" in kinds[-1].text
    driver.execute_script("arguments[0].focus()", kinds[-1].find_element("tag name", "summary"))
    press(driver, Keys.ENTER)
    assert kinds[-1].get_attribute("open") and f"{IMAGE}8" in kinds[-1].text and "4 more kinds" in kinds[-1].text
    for table in driver.find_elements("tag name", "table"):
        assert table.find_elements("tag name", "caption") and table.find_elements("css selector", "th[scope]")
    for scheme in ("light", "dark"):
        colours(driver, scheme)
        for width in (1280, 390):
            resize(driver, width, 900)
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width
            captions = "[...document.querySelectorAll('.scroll > table > caption')]"
            wide = f"{captions}.filter(one => one.offsetWidth > one.closest('.scroll').clientWidth)"
            assert driver.execute_script(f"return [{captions}.length > 0, {wide}.length]") == [True, 0]
        seen = "return [...document.querySelectorAll('%s')].map(one => getComputedStyle(one).%s)"
        ink = driver.execute_script(seen % ("body", "color"))
        assert set(driver.execute_script(seen % ("#confusion td", "color"))) == set(ink)
        assert set(driver.execute_script(seen % ('.plot text, .drawing [fill="#222"] text', "fill"))) == set(ink)


@pytest.mark.slow
def test_from_a_corpus_that_tries_to_be_html(driver, tmp_path, monkeypatch):
    """Words, labels and names of files, through the command."""
    from partwise import interpret

    monkeypatch.chdir(tmp_path)
    words = [("the", "D"), ("dog", "N"), (SCRIPT.replace(" ", ""), "N"), (IMAGE.replace(" ", "/"), "<b>V</b>")]
    name = "<b>corpus<b>.txt"
    with interpret():
        (tmp_path / name).write_text("\n\n".join("\n".join(" ".join(one) for one in words) for _ in range(3)) + "\n")
        assert CliRunner().invoke(app, ["train", "tag", name, "-o", "<i>m", "--epochs", "2", "-q"]).exit_code == 0
        wrong = (tmp_path / name).read_text().replace("dog N", "dog <b>V</b>").replace("the D", "the <i>new</i>", 1)
        (tmp_path / name).write_text(wrong)
        result = CliRunner().invoke(app, ["report", "<i>m", name, "--html", "r.html", "-q"])
    assert result.exit_code == 0, result.stderr
    driver.get((tmp_path / "r.html").as_uri())
    assert driver.title == f"<i>m on {name}" and not driver.find_elements("css selector", "script, img, main i")
    assert words[2][0] in texts(driver, "#mistakes .form") and "<i>new</i>" in driver.find_element("class name", "notes").text
    assert texts(driver, "#mistakes > details > summary b")[:2] == ["<b>V</b>", "N"]


def test_a_report_with_nothing_but_scores(tmp_path):
    bare = ModelReport([ScoreRow("f1", "F1", 1.0)], "rows")
    page = write_report(tmp_path / "page.html", bare, history=None, points=[]).read_text()
    assert "no probabilities" in page and "Without intervals" in page
    assert 'id="mistakes"' not in page and 'id="training"' not in page
