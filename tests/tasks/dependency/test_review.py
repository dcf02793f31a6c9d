"""The page of suspects of a treebank: where its cells are, and trees in a real browser."""

import json

import pytest
from typer.testing import CliRunner

from browser import chromium, press, resize, text_of, wait_for
from partwise.cli.app import app
from partwise.files.text_edits import EditableText
from partwise.tasks.dependency.review import without_trees
from small_treebanks import TEXT, as_conllu, sentences, treebank
from tree_reviews import doubted_treebank, treebank_review, write_treebank_page

pytest.importorskip("jinja2", reason="jinja2 is not installed: pip install jinja2")

DOUBTS = {0: (3, "nsubj"), 4: (2, "nmod")}  # They and books
STRANGE = TEXT.replace("books", "bücher 📚").replace("\n", "\r\n").encode()


@pytest.fixture
def driver(tmp_path):
    with chromium(tmp_path) as driver:
        yield driver
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_cells_are_heads_and_relations_where_they_stand():
    """Also after multi-word tokens, empty nodes, comments, and with other ends of lines: or `Review.check` would refuse."""
    judged = doubted_treebank(STRANGE, DOUBTS)
    source = EditableText.of(STRANGE, "corpus.conllu")
    review = treebank_review(judged, source)
    packed = review.packed("parse", source, "")
    (passage,), (item,) = review.passages, review.items
    assert passage.given == ["4\tnsubj", "4\taux", "4\tadvmod", "0\troot", "4\tobj", "4\tpunct"] and passage.lines[1] == 5
    assert [(one.word, one.believed) for one in item.doubts] == [(0, "3\tnsubj"), (4, "2\tnmod")]
    assert packed["shape"] == "heads" and packed["labels"][: packed["menu"]] == judged.data.names
    single = treebank_review(judged, source, words=True)
    assert not single.whole and [[one.word for one in item.doubts] for item in single.items] == [[0], [4]]


def test_all_but_heads_and_relations_must_stay():
    lines = without_trees(treebank())
    assert lines == without_trees(treebank(TEXT.replace("4\tnsubj", "3\tobj")))
    assert lines != without_trees(treebank(TEXT.replace("SpaceAfter=No", "SpaceAfter=Yes")))
    assert lines != without_trees(treebank(TEXT.replace("4:conj", "5:conj")))


def decide(tmp_path, file, changes):
    """What a page would hand out for these changes: (line, from, to)."""
    source = EditableText.read(str(file))
    ends = [-1, *source.newlines.tolist()]
    made = []
    for line, old, new in changes:
        at = source.text.index(f"\t{old}\t".encode(), ends[line - 1]) + 1
        made.append({"line": line, "at": at, "from": old, "to": new})
    about = {"name": source.name, "sha256": source.sha256, "encoding": "utf-8"}
    said = {"format": "partwise decisions", "version": 1, "task": "parse", "file": about, "reading": {"encoding": "utf-8"}}
    said["decisions"] = [{"item": 0, "line": 3, "choice": "edit", "changes": made}]
    path = tmp_path / "decisions.json"
    path.write_text(json.dumps(said))
    return path


def test_repair_keeps_every_other_byte_and_refuses_what_is_no_tree(tmp_path):
    file, out = tmp_path / "corpus.conllu", tmp_path / "out.conllu"
    file.write_bytes(STRANGE)

    def repair(*changes):
        return CliRunner().invoke(app, ["repair", str(file), str(decide(tmp_path, file, changes)), "-o", str(out)])

    result = repair((3, "4\tnsubj", "2\tobj"))
    assert result.exit_code == 0, result.output
    assert out.read_bytes() == STRANGE.replace(b"4\tnsubj", b"2\tobj")
    out.unlink()
    result = repair((3, "4\tnsubj", "2\tobj"), (5, "4\taux", "1\taux"))
    assert result.exit_code == 1 and "line 3, sentence 0: the heads of the words 1, 2 go in a circle" in result.stderr
    result = repair((3, "4\tnsubj", "9\tobj"))
    assert result.exit_code == 1 and "is word 9, but the sentence has 6" in result.stderr and not out.exists()
    result = repair((3, "PRON\tPRP", "NOUN\tPRP"))
    assert result.exit_code == 1 and "would change more than labels" in result.stderr and not out.exists()


def shown_arcs(driver, kind):
    """The relations on arcs of a kind."""
    return [one.text for one in driver.find_elements("css selector", f".arcs .{kind} text")]


def opened(driver, page):
    driver.get(page.as_uri())
    driver.execute_script("localStorage.clear()")
    driver.get(page.as_uri())


def test_accept_heads_in_a_browser(driver, tmp_path):
    """The quick one: arcs of both kinds are drawn; a head is chosen by a click; what makes a circle is refused."""
    file, page = write_treebank_page(tmp_path, TEXT.encode(), DOUBTS)
    opened(driver, page)
    assert shown_arcs(driver, "doubted") == ["nsubj", "obj"] and shown_arcs(driver, "believed") == ["nsubj?", "nmod?"]
    assert len(driver.find_elements("css selector", ".arcs .arc")) == 8
    press(driver, "e")
    assert driver.switch_to.active_element.get_attribute("id") == "head"
    driver.find_element("css selector", ".sentence [data-word='4']").click()  # They hang from books, which hang from buy
    assert shown_arcs(driver, "changed") == ["nsubj"] and "books (5), nsubj" in text_of(driver, "message")
    press(driver, "\ue00c")  # Escape
    driver.find_element("css selector", ".sentence [data-word='4']").click()
    driver.find_element("css selector", ".sentence [data-word='0']").click()
    assert "That is no tree: the heads go in a circle" in text_of(driver, "message")
    assert shown_arcs(driver, "changed") == ["nsubj"]
    press(driver, "\ue00c", "u", "a")
    assert shown_arcs(driver, "changed") == ["nsubj", "nmod"] and shown_arcs(driver, "was") == ["was nsubj", "was obj"]
    driver.find_element("id", "download").click()
    decisions = tmp_path / "corpus.conllu.decisions.json"
    wait_for(driver, decisions.exists)
    result = CliRunner().invoke(app, ["repair", str(file), str(decisions), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out").read_text() == TEXT.replace("4\tnsubj", "3\tnsubj").replace("4\tobj", "2\tnmod")


@pytest.mark.slow
def test_menus_roots_single_words_and_a_phone(driver, tmp_path):
    from selenium.webdriver.support.ui import Select

    resize(driver, 390, 844)
    _, page = write_treebank_page(tmp_path, TEXT.encode(), {0: (2, "nsubj"), 1: (1, "aux")}, words=True)
    opened(driver, page)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
    press(driver, "a", "a")  # each alone is fine; both together are a circle
    assert "go in a circle" in text_of(driver, "message") and text_of(driver, "count") == "1 of 2 decided"
    press(driver, "e")
    Select(driver.find_element("id", "head")).select_by_value("0")
    assert "2 words hang from the root now" in text_of(driver, "message")
    assert Select(driver.find_element("id", "relation")).first_selected_option.text == "root"
    Select(driver.find_element("id", "relation")).select_by_value("obj")
    assert "root, obj" in text_of(driver, "message")
    assert not driver.find_elements("css selector", ".sentence button[data-word='3']")  # only what is in doubt can be edited
    press(driver, "\ue00c")
    driver.find_element("id", "search").send_keys("don't")
    wait_for(driver, lambda: text_of(driver, "where") == "none")


# ---------------------------------------------------------------------------------------------------------------------
# ``partwise suspects``
# ---------------------------------------------------------------------------------------------------------------------


def partwise(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A small treebank, one with a wrong head and a wrong relation, and a model of the former."""
    import partwise as library

    folder = tmp_path_factory.mktemp("suspects")
    X, y = sentences(8)
    good = as_conllu(X, y).replace("1\t", "# a comment\n1-2\tboth\t_\t_\t_\t_\t_\t_\t_\t_\n1\t", 1)
    first, second = "2\tnsubj", "2\tobj"
    bad = good.replace(second, "1\tobj", 1)
    at = bad.rindex(first)
    (folder / "good").write_text(good)
    (folder / "bad").write_text(bad[:at] + "2\tpunct" + bad[at + len(first) :])
    (folder / "templates").write_text("h.upos|m.upos\nh.upos\nm.form\n")
    with library.interpret():
        result = partwise("train", "parse", folder / "good", "-o", folder / "model", "--templates", folder / "templates",
                          "--hash-bits", "8", "--epochs", "6", "-q")  # fmt: skip
    assert result.exit_code == 0, result.output
    return folder


@pytest.mark.interpreted
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_words_sentences_and_a_page(files):
    bad, lines = files / "bad", (files / "bad").read_text().splitlines()
    common = ("suspects", files / "model", bad, "--folds", "0", "--precision", "1e-9", "--truth", files / "good", "--json")
    result = partwise(*common, "--parts", "-o", files / "out.tsv")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["folds"] == 0 and said["sentences"] == 8 and said["truth"]["wrong"] == 2
    assert said["truth"]["average_precision"] == 1.0
    for found in said["suspects"][:2]:
        cells = lines[found["line"] - 1].split("\t")
        assert cells[0] == str(found["part"] + 1) and found["given"].split(":")[0] == cells[6]
        assert found["given"].endswith(f" {cells[7]}") and found["believed"].startswith("2:")
    written = [line.split("\t") for line in (files / "out.tsv").read_text().splitlines()]
    assert written[0][4:] == ["part", "given", "believed"] and len(written) == said["listed"] + 1
    assert {row[5].split(" ")[-1] for row in written[1:3]} == {"obj", "punct"} and "[" in written[1][3]
    result = partwise(*common, "--html", files / "page.html")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert {one["example"] for one in said["suspects"][:2]} == {0, 7} and said["truth"]["recall"] == 1.0
    assert "[" in result.stderr and " > 2:" in result.stderr and '"shape": "heads"' in (files / "page.html").read_text()


@pytest.mark.interpreted
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_a_truth_of_other_sentences_is_refused(files):
    result = partwise("suspects", files / "model", files / "bad", "--folds", "0", "--truth", files / "model")
    assert result.exit_code == 1
    (files / "short").write_text("1\tYes\t_\tX\t_\t_\t0\troot\t_\t_\n")
    result = partwise("suspects", files / "model", files / "bad", "--folds", "0", "--truth", files / "short")
    assert result.exit_code == 1 and "must have the sentences of" in result.stderr
