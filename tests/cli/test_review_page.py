"""The page of suspects, driven in a real browser."""

import csv
import io
import json
import re
import sys
import time
from html import unescape

import pytest
from typer.testing import CliRunner

from browser import chromium, colours, press, resize, text_of, wait_for
from partwise.cli.app import app
from review_cases import column_text, write_page, write_text_page

pytest.importorskip("jinja2", reason="jinja2 is not installed: pip install jinja2")

SCRIPT = "<script>document.title='owned'</script>"
IMAGE = "<img src=x onerror=document.title='owned'>"
SENTENCES = [
    [("the", "D"), ("dog", "V"), ("barks", "V")],
    [(SCRIPT, "N"), ("</script>" + IMAGE, "A&B"), ("'\"`${1}", "la\"bel'")],
    [("שלום", "N"), ("עולם", "V"), ("مرحبا", "N")],
    [("日本語", "N"), ("の", "P"), ("テキスト", "V")],
]
DOUBTS = [(0, 1, "N"), (1, 0, IMAGE), (2, 1, "N"), (3, 2, "N")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """One for all tests, and where downloads go."""
    downloads = tmp_path_factory.mktemp("downloads")
    with chromium(downloads) as driver:
        yield driver, downloads


@pytest.fixture
def driver(browser):
    """The browser, as new."""
    driver, downloads = browser
    driver.get("about:blank")
    resize(driver, 1280, 900)
    for file in downloads.iterdir():
        file.unlink()
    yield driver
    complaints = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert complaints == []


def opened(driver, page):
    """A page from disk, with nothing kept of it."""
    driver.get(page.as_uri())
    driver.execute_script("localStorage.clear()")
    driver.get(page.as_uri())


def downloaded(driver, browser):
    """The decisions."""
    driver.find_element("id", "download").click()
    path = browser[1] / "corpus.txt.decisions.json"
    wait_for(driver, path.exists)
    return path


def labels_shown(driver):
    """Of the words of the passage: the labels as they are now."""
    return [token.text.split("\n")[1:] for token in driver.find_elements("css selector", ".passage .token")]


def test_load_move_accept_and_nothing_runs(driver, browser, tmp_path):
    """The quick one: the way through, with data that try to be HTML."""
    file, page = write_page(tmp_path, SENTENCES, DOUBTS)
    opened(driver, page)
    assert driver.title == "Suspects of corpus.txt" and text_of(driver, "count") == "0 of 4 decided"
    assert labels_shown(driver) == [["D"], ["V", "N?"], ["V"]]
    press(driver, "j")
    words = [word.text for word in driver.find_elements("css selector", ".passage .form")]
    assert words == [word for word, _ in SENTENCES[1]] and IMAGE in text_of(driver, "card")
    assert not driver.find_elements("css selector", "main img, main script") and driver.title == "Suspects of corpus.txt"
    press(driver, "j")
    assert driver.find_element("css selector", ".passage").get_attribute("dir") == "rtl"
    press(driver, "k", "k", "a")
    assert text_of(driver, "count") == "1 of 4 decided" and "1: accepted" in text_of(driver, "message")
    result = CliRunner().invoke(app, ["repair", str(file), str(downloaded(driver, browser)), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out").read_bytes() == file.read_bytes().replace(b"dog\tV", b"dog\tN")


def test_the_page_is_alone(tmp_path):
    """Nothing in it can be loaded from elsewhere, and data are no markup."""
    _, page = write_page(tmp_path, SENTENCES, DOUBTS)
    html = page.read_text()
    assert "default-src 'none'" in unescape(html) and not re.search(r"https?://|\bsrc=|\bhref=", html.split('id="data"')[0])
    assert SCRIPT not in html and IMAGE not in html and html.count("<script") == html.count("</script") == 3


def test_without_jinja2_it_says_so_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = CliRunner().invoke(app, ["suspects", "no-model", "no-file", "--html", str(tmp_path / "page.html")])
    assert result.exit_code == 1 and "--html needs jinja2: pip install" in result.stderr


@pytest.mark.slow
def test_keep_edit_undo_reload_copy(driver, browser, tmp_path):
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    file, page = write_page(tmp_path, SENTENCES, DOUBTS)
    opened(driver, page)
    press(driver, "g", "e")
    typed = driver.find_element("id", "typed")
    assert typed == driver.switch_to.active_element
    typed.clear()
    typed.send_keys("to", Keys.TAB)
    press(driver, *"agjku")  # letters mean nothing as long as a label is edited
    assert text_of(driver, "count") == "1 of 4 decided"
    driver.execute_script("document.getElementById('typed').value = 'a\\tb'")
    driver.find_element("id", "typed").send_keys(Keys.ENTER)
    assert "must fit in its column" in text_of(driver, "message")
    typed = driver.find_element("id", "typed")
    typed.clear()
    typed.send_keys('new "label"', Keys.ENTER)
    driver.find_elements("css selector", ".passage .token")[2].click()
    Select(driver.find_element("id", "menu")).select_by_value("A&B")
    press(driver, Keys.ESCAPE)
    assert "edited" in text_of(driver, "card") and labels_shown(driver)[2] == ["la\"bel'", "A&B"]
    press(driver, "j", "a", "u")
    assert text_of(driver, "count") == "2 of 4 decided" and "undone" in text_of(driver, "message")
    driver.get(page.as_uri())
    assert text_of(driver, "count") == "2 of 4 decided" and "Line 9" in text_of(driver, "card")
    press(driver, "u")  # also what was decided before the page was loaded again
    assert "Line 5" in text_of(driver, "card") and labels_shown(driver)[2] == ["la\"bel'"]
    path = downloaded(driver, browser)
    said = json.loads(path.read_text())
    assert [one["choice"] for one in said["decisions"]] == ["keep", "edit"]
    driver.execute_script("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    driver.find_element("id", "copy").click()
    wait_for(driver, lambda: "Copied" in text_of(driver, "message"))
    corrected = [*SENTENCES[:1], [(SCRIPT, 'new "label"'), *SENTENCES[1][1:]], *SENTENCES[2:]]
    assert driver.execute_script("return window.copied") == column_text(corrected)
    result = CliRunner().invoke(app, ["repair", str(file), str(path), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0 and (tmp_path / "out").read_text() == column_text(corrected)


@pytest.mark.slow
def test_decisions_go_to_another_browser(driver, browser, tmp_path):
    from selenium.webdriver.common.keys import Keys

    _, page = write_page(tmp_path, SENTENCES, DOUBTS)
    opened(driver, page)
    press(driver, "a", "g", "e")
    driver.find_element("id", "typed").clear()
    driver.find_element("id", "typed").send_keys("new", Keys.ENTER, Keys.ESCAPE)
    path = downloaded(driver, browser)
    before = driver.execute_script("return state.asJson()")
    opened(driver, page)
    assert text_of(driver, "count") == "0 of 4 decided"
    for content, message in (
        ("{", "not a file of decisions"),
        (before.replace('"sha256": "', '"sha256": "0'), "about another file, or it has changed"),
        (before.replace('"page": "', '"page": "0'), "made in another page"),
        (before, "Took over 3 decisions"),
    ):
        path.write_text(content)
        driver.find_element("id", "file").send_keys(str(path))
        wait_for(driver, lambda message=message: message in text_of(driver, "message"))
    assert text_of(driver, "count") == "3 of 4 decided" and driver.execute_script("return state.asJson()") == before


@pytest.mark.slow
def test_search_and_filters(driver, tmp_path):
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    _, page = write_page(tmp_path, SENTENCES, DOUBTS)
    opened(driver, page)
    pairs = Select(driver.find_element("id", "pair"))
    assert [option.text for option in pairs.options] == ["all pairs", "V → N (3)", f"N → {IMAGE} (1)"]
    pairs.select_by_index(2)
    assert text_of(driver, "where") == "1 / 1 of 4"
    pairs.select_by_index(0)
    press(driver, Keys.ESCAPE, "/", "語")
    wait_for(driver, lambda: text_of(driver, "where") == "1 / 1 of 4")
    driver.find_element("id", "search").send_keys("nowhere")
    wait_for(driver, lambda: "No suspect fits" in text_of(driver, "card"))
    for key in "jkageu":  # in the field they are letters
        press(driver, key)
    assert text_of(driver, "count") == "0 of 4 decided"
    driver.find_element("id", "search").clear()
    driver.execute_script("document.getElementById('search').dispatchEvent(new Event('input'))")
    wait_for(driver, lambda: text_of(driver, "where").endswith("/ 4"))
    driver.find_element("css selector", ".row").click()
    driver.find_element("id", "accept").click()
    Select(driver.find_element("id", "state")).select_by_value("open")
    assert text_of(driver, "where") == "1 / 3 of 4"


@pytest.mark.slow
def test_no_suspects(driver, tmp_path):
    _, page = write_page(tmp_path, [[("a", "X")]], [])
    opened(driver, page)
    press(driver, *"jkageu")
    assert "There are no suspects" in text_of(driver, "card") and text_of(driver, "count") == "0 of 0 decided"


@pytest.mark.slow
def test_single_words_may_be_all_that_is_edited(driver, tmp_path):
    _, page = write_page(tmp_path, SENTENCES, [(0, 1, "N"), (0, 2, "D")], whole=False)
    opened(driver, page)
    assert len(driver.find_elements("css selector", ".passage button")) == 1
    press(driver, "a")  # what is decided about one word is seen beside the others of its sentence
    assert text_of(driver, "where") == "2 / 2" and labels_shown(driver) == [["D"], ["V", "N"], ["V", "D?"]]
    press(driver, "u", "j")
    assert labels_shown(driver) == [["D"], ["V"], ["V", "D?"]]


@pytest.mark.slow
def test_very_long_sentences_and_words(driver, tmp_path):
    sentence = [(f"word{k}" if k != 2500 else "x" * 3000, "N") for k in range(5000)]
    _, page = write_page(tmp_path, [sentence], [(0, 2500, "V"), (0, 10, "V")])
    opened(driver, page)
    resize(driver, 390, 800)
    assert len(driver.find_elements("css selector", ".passage .token")) < 100
    assert driver.execute_script("return document.documentElement.scrollWidth") == 390
    driver.find_element("css selector", ".gap").click()
    assert len(driver.find_elements("css selector", ".passage .token")) > 300


@pytest.mark.slow
def test_100_000_suspects_stay_quick(driver, tmp_path):
    sentences = [[("the", "D"), (f"dog{k}", "V"), ("barks", "V")] for k in range(100_000)]
    _, page = write_page(tmp_path, sentences, [(k, 1, "N") for k in range(100_000)])
    opened(driver, page)
    assert text_of(driver, "count") == "0 of 100,000 decided" and len(driver.find_elements("css selector", ".row")) == 50
    press(driver, *"j" * 45)
    seen = "const [row, list] = [document.querySelector('.row[aria-current]'), list_].map((x) => x.getBoundingClientRect());"
    seen = seen.replace("list_", "document.getElementById('list')")
    assert driver.execute_script(seen + "return row.top >= list.top - 1 && row.bottom <= list.bottom + 1")
    spent = driver.execute_script("""
        const before = performance.now();
        for (const key of "jjaagkju") document.dispatchEvent(new KeyboardEvent("keydown", {key}));
        return performance.now() - before;""")
    assert spent < 2000  # eight keys, on a slow machine
    begun = time.perf_counter()
    driver.find_element("id", "search").send_keys("dog99999")
    wait_for(driver, lambda: text_of(driver, "where") == "1 / 1 of 100,000")
    assert time.perf_counter() - begun < 10
    kept = driver.execute_script("""
        for (let k = 0; k < 100000; k++) state.choices.set(k, "a");
        return [state.save(), state.asJson().length];""")
    assert kept[0] and kept[1] > 1_000_000


@pytest.mark.slow
def test_two_tabs_agree(driver, tmp_path):
    _, page = write_page(tmp_path, SENTENCES, DOUBTS)
    opened(driver, page)
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    driver.get(page.as_uri())
    press(driver, "a")
    driver.close()
    driver.switch_to.window(first)
    wait_for(driver, lambda: text_of(driver, "count") == "1 of 4 decided")


@pytest.mark.slow
def test_keeping_may_fail_and_is_said(driver, tmp_path):
    _, page = write_page(tmp_path, SENTENCES, DOUBTS)
    opened(driver, page)
    driver.execute_script("state.storage = {setItem() { throw new Error('full'); }, getItem: () => null}")
    press(driver, "a")
    assert "cannot keep this: download" in text_of(driver, "message") and text_of(driver, "count") == "1 of 4 decided"


@pytest.mark.slow
def test_widths_colours_and_the_keyboard_alone(driver, tmp_path):
    from selenium.webdriver.common.keys import Keys

    _, page = write_page(tmp_path, SENTENCES, DOUBTS)
    opened(driver, page)
    papers = set()
    for scheme in ("light", "dark"):
        colours(driver, scheme)
        for width in (1280, 390):
            resize(driver, width, 900)
            assert driver.execute_script("return document.documentElement.scrollWidth") == width
            papers.add(driver.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert len(papers) == 2
    resize(driver, 1280, 900)
    for _ in range(40):
        press(driver, Keys.TAB)
        if driver.switch_to.active_element.get_attribute("id") == "keep":
            break
    press(driver, Keys.ENTER, Keys.ENTER)  # the button is made anew, and keeps the focus
    assert text_of(driver, "count") == "2 of 4 decided"
    assert driver.switch_to.active_element.get_attribute("id") == "keep"


@pytest.mark.slow
def test_a_table_whose_classes_have_quotes_and_newlines(driver, browser, tmp_path):
    """From the command to the corrected file: what is typed is quoted as CSV wants it."""
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    cells = ('"""a"""', '"b\n, c"')
    rows = [f"{1 + i % 2 * 4 + i / 100},{cells[(i % 2 == 1) != (i in (7, 20))]}" for i in range(60)]
    file, model, page, out = (tmp_path / name for name in ("corpus.txt", "model", "page.html", "out.csv"))
    file.write_bytes(("size,class\r\n" + "\r\n".join(rows)).encode())
    for words in (
        ("train", "classify", file, "-o", model, "--loss", "crf", "-q"),
        ("suspects", model, file, "--html", page, "-q"),
    ):
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == 0, result.output
    opened(driver, page)
    assert text_of(driver, "count") == "0 of 2 decided"
    press(driver, "e")
    driver.find_element("id", "typed").clear()
    driver.find_element("id", "typed").send_keys('new, "one"', Keys.ENTER)
    press(driver, Keys.ESCAPE, "j", "e")
    given = driver.execute_script("return state.labelsOf(current())[0]")
    other = {'"a"': "b\n, c", "b\n, c": '"a"'}[given]
    Select(driver.find_element("id", "menu")).select_by_value(other)
    press(driver, Keys.ESCAPE)
    result = CliRunner().invoke(app, ["repair", str(file), str(downloaded(driver, browser)), "-o", str(out)])
    assert result.exit_code == 0, result.output
    before, after = (list(csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))) for path in (file, out))
    changed = {k: new[1] for k, (old, new) in enumerate(zip(before, after, strict=True)) if old != new}
    assert set(changed) == {8, 21} and set(changed.values()) == {'new, "one"', other}


# ---------------------------------------------------------------------------------------------------------------------
# Cells that are edited as text, and pictures
# ---------------------------------------------------------------------------------------------------------------------


def replace_text(driver, text):
    """Put a text in the place of the one that is edited, and press Enter."""
    from selenium.webdriver.common.keys import Keys

    typed = driver.find_element("id", "typed")
    assert typed == driver.switch_to.active_element
    driver.execute_script("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))", typed, text)
    typed.send_keys(Keys.ENTER)


def test_structures_are_edited_as_text(driver, browser, tmp_path):
    """What is no structure is not taken; what is one is applied by ``repair``."""
    rows = [["(((....)))"], ["((....))"]]
    file, page = write_text_page(tmp_path, "dot-bracket", rows, {0: [".((....))."]}, above=["GGGAAAACCC", ""])
    opened(driver, page)
    assert [line.text for line in driver.find_elements("css selector", ".line")] == [
        "GGGAAAACCC", "given\n(((....)))", "believed\n.((....)).",
    ]  # fmt: skip
    assert [mark.text for mark in driver.find_elements("css selector", "mark")] == ["(", ")", ".", "."]
    press(driver, "e")
    for text, why in (
        ("(((....))", "9 characters, and must have 10"),
        ("(((....)).", "The bracket ( at 1 is never closed"),
        ("(((....)))\n..", "There are 2 lines, and must be 1"),
        ("(((..x.)))", "closes none"),
    ):
        replace_text(driver, text)
        assert why in text_of(driver, "message") and text_of(driver, "count") == "0 of 1 decided"
    replace_text(driver, "((......))")
    assert "edited" in text_of(driver, "message") and "((......))" in text_of(driver, "card")
    decisions = json.loads(downloaded(driver, browser).read_text())["decisions"]
    assert decisions == [
        {"item": 0, "line": 1, "choice": "edit", "changes": [{"line": 1, "at": 0, "from": "(((....)))", "to": "((......))"}]}
    ]


@pytest.mark.slow
def test_alignments_are_edited_as_text(driver, browser, tmp_path):
    rows = [["GAT-TACA", "GATCT-CA", "11101011"], ["AC", "AC", "11"]]
    believed = {0: ["GATTACA", "GATCTCA", "1111011"]}
    file, page = write_text_page(tmp_path, "alignment", rows, believed, task="align", names=("row1", "row2", "core"))
    opened(driver, page)
    assert [mark.text for mark in driver.find_elements("css selector", ".line.given mark")] == ["TA", "CT"]
    press(driver, "e")
    for text, why in (
        ("GATTACA\nGATCTC\n1111011", "does not have the letters GATCTCA"),
        ("GATTACA-\nGATCTCA\n1111011", "8 and 7 columns"),
        ("GATTACA-\nGATCTCA-\n11110111", "Both rows have a gap"),
        ("GATTACA\nGATCTCA\n111101", "0 or 1 for each of the 7 columns"),
        ("GATTACA\nGATCTCA", "There are 2 lines, and must be 3"),
    ):
        replace_text(driver, text)
        assert why in text_of(driver, "message")
    replace_text(driver, "GATTACA\nGATCTCA\n1111011")
    assert "accepted" in text_of(driver, "message")  # that is what is believed
    press(driver, "\ue00c", "u")
    assert text_of(driver, "count") == "0 of 1 decided"
    replace_after_edit = "GATTACA\nGATCTCA\n0000000"
    press(driver, "e")
    replace_text(driver, replace_after_edit)
    changes = json.loads(downloaded(driver, browser).read_text())["decisions"][0]["changes"]
    assert [change["to"] for change in changes] == replace_after_edit.split("\n")
    result = CliRunner().invoke(
        app, ["repair", str(file), str(browser[1] / "corpus.txt.decisions.json"), "-o", str(tmp_path / "out")]
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out").read_text().split("\n")[1] == "GATTACA\tGATCTCA\t0000000"


@pytest.mark.slow
def test_pictures_are_drawn_and_edited(driver, tmp_path):
    from partwise.cli.review_page import made_page
    from partwise.files.text_edits import EditableText
    from partwise.tasks.common.review import DoubtedWord, Passage, Review, ReviewItem

    file, page = tmp_path / "corpus.txt", tmp_path / "page.html"
    file.write_text("[[0, 1], [1, 1]]")
    passage = Passage(["0,0", "0,1", "1,0", "1,1"], ["0", "1", "1", "1"], [2, 5, 10, 13], [1] * 4, width=2)
    review = Review([passage], [ReviewItem(0, 0.9, [DoubtedWord(0, "1", 0.9)])], ["0", "1"], True, r"\d", "A digit.", {})
    source = EditableText.read(str(file))
    page.write_bytes(made_page(review.packed("graph", source, "1 of 1"), source))
    opened(driver, page)
    rows = driver.find_elements("css selector", ".pixels")
    assert [len(row.find_elements("css selector", ".pixel")) for row in rows] == [2, 2]
    assert len(driver.find_elements("css selector", ".pixel.doubted")) == 1
    driver.find_elements("css selector", ".pixels .pixel")[3].click()
    replace_text(driver, "0")
    assert len(driver.find_elements("css selector", ".pixel.changed")) == 1 and text_of(driver, "count") == "1 of 1 decided"
