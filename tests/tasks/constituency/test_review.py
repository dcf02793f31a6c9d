"""The page of suspects of trees in brackets: where trees stand, what is written in their place, and a real browser."""

import json

import pytest
from typer.testing import CliRunner

from browser import chromium, press, text_of, wait_for
from partwise.cli.app import app
from partwise.datasets import Constituent
from partwise.tasks.constituency.review import rewritten, tree_texts
from tree_reviews import write_brackets_page

pytest.importorskip("jinja2", reason="jinja2 is not installed: pip install jinja2")

FIRST = "( (S\r\n    (NP-SBJ (PRP sie)\r\n    )\r\n    (VP (VBP bäckt) (NP (NN kuchen)))))"
TEXT = f"{FIRST}\r\n\r\n(S (NP (DT the) (NN dog)) (VP (VBZ barks))) (NP (-NONE- *))\r\n(FRAG (UH yes))\r\n".encode()
BELIEVED = ["(S (NP (PRP sie)) (VBP bäckt) (NP (NN kuchen)))", "(S (NP (DT the) (NN dog) (VBZ barks)))", "(FRAG (UH yes))"]

GOOD = "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (NN cats))))\n\n(S (NP (NN cats)) (VP (VBZ see) (NP (DT the) (NN dog))))\n"
RIGHT = "(S\n  (NP (DT a) (NN dog))\n  (VP (VBZ sees) (NP (NN mice))))\n"
WRONG = "(S\n  (NP (DT a) (NN dog))\n  (VP (NP (VBZ sees) (NN mice))))\n"


def test_where_trees_stand():
    """A tree with traces alone is none; places are bytes."""
    found = list(tree_texts(TEXT.decode(), False, False))
    assert [text for _, text in found] == [FIRST, "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", "(FRAG (UH yes))"]
    for at, text in found:
        assert TEXT[at:].startswith(text.encode())
    assert len(list(tree_texts(TEXT.decode(), True, False))) == 4


@pytest.mark.parametrize(
    ("given", "believed", "written"),
    [
        ("(S (NP-SBJ (PRP he)) (VP (VBZ is)))", "(S (NP (PRP he)) (VBZ is))", "(S (NP-SBJ (PRP he)) (VBZ is))"),
        ("( (S (NP (PRP he)) (VP (VBZ is))))", "(S (PRP he) (VP (VBZ is)))", "( (S (PRP he) (VP (VBZ is))))"),
        (  # both traces stay below their brackets
            "(S (NP (-NONE- *)) (VP-X (VB go) (NP-1 (-NONE- *T*)) (ADVP (RB home))))",
            "(S (VP (VB go) (RB home)))",
            "(S (NP (-NONE- *)) (VP-X (VB go) (NP-1 (-NONE- *T*)) (RB home)))",
        ),
        (  # their bracket is gone: below the lowest one there
            "(S (NP (DT the) (NN dog)) (VP (VBZ is) (NP (-NONE- *))))",
            "(S (DT the) (NX (NN dog) (VBZ is)))",
            "(S (DT the) (NX (NN dog) (VBZ is) (NP (-NONE- *))))",
        ),
    ],
)
def test_what_a_model_does_not_see_is_kept(given, believed, written):
    assert rewritten(given, Constituent.read(believed), False) == written


@pytest.mark.slow
def test_edit_and_accept_in_a_browser(tmp_path):
    """Brackets that differ are marked, what is no tree or another sentence is refused; the rest stays."""
    file, page = write_brackets_page(tmp_path, TEXT, BELIEVED)
    with chromium(tmp_path) as driver:
        driver.get(page.as_uri())
        marks = [one.text for one in driver.find_elements("css selector", ".differs .name")]
        assert marks == ["VP"] and "VP → none" in driver.find_element("id", "list").text
        press(driver, "a", "e")
        typed = driver.find_element("id", "typed")
        assert typed == driver.switch_to.active_element and typed.get_attribute("value").startswith("(S (NP (DT the)")
        for text, message in (
            ("(S (NP (DT the) (NN dog)) (VP (VBZ barks))", "A bracket is not closed."),
            ("(S (NP (DT the) (NN cat)) (VP (VBZ barks)))", "word 2 is “dog”, not “cat”"),
            ("(S (DT the) (NN dog) (VBZ barks) (. !))", "“!” is one word too many"),
            ("(S (NP) (DT the) (NN dog) (VBZ barks))", "There is nothing in the bracket (NP)."),
        ):
            typed.clear()
            typed.send_keys(text)
            driver.find_element("css selector", ".editor button").click()
            assert message in text_of(driver, "message")
        typed.clear()
        typed.send_keys("(S (XP (DT the)\n (NN dog))\n (VP (VBZ barks)))")
        driver.find_element("css selector", ".editor button").click()
        assert text_of(driver, "message") == "The tree is set." and "edited" in text_of(driver, "card")
        driver.find_element("id", "download").click()
        decisions = tmp_path / "corpus.mrg.decisions.json"
        wait_for(driver, decisions.exists)
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
    result = CliRunner().invoke(app, ["repair", str(file), str(decisions), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    other = tmp_path / "corpus.mrg"
    other.write_bytes(TEXT.replace(b"yes", b"no"))  # not a tree that was changed: no line is named
    result = CliRunner().invoke(app, ["repair", str(other), str(decisions), "-o", str(tmp_path / "not")])
    assert result.exit_code == 1 and "has changed since" in result.stderr and "there is no" not in result.stderr
    accepted = "( (S (NP-SBJ (PRP sie)) (VBP bäckt) (NP (NN kuchen))))"
    edited = "(S (XP (DT the)\n (NN dog))\n (VP (VBZ barks)))"
    wanted = TEXT.decode().replace(FIRST, accepted).replace("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", edited)
    assert (tmp_path / "out").read_bytes() == wanted.encode()


@pytest.mark.parametrize(
    ("new", "message"),
    [("(S (NP (DT the) (NN dog)) (VBZ barks)", "is never closed"), ("(S (DT the) (NN dog))", "more than labels")],
)
def test_repair_refuses_what_is_no_tree_of_the_sentence(tmp_path, new, message):
    from partwise.files.text_edits import EditableText

    file, old = tmp_path / "corpus.mrg", "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"
    file.write_bytes(TEXT)
    source = EditableText.read(str(file))
    at = source.text.index(old.encode())
    about = {"name": source.name, "sha256": source.sha256, "encoding": "utf-8"}
    changes = [{"line": source.line(at), "at": at, "from": old, "to": new}]
    said = {"format": "partwise decisions", "version": 1, "task": "constituency", "file": about, "reading": {"traces": False}}
    said["decisions"] = [{"choice": "edit", "changes": changes}]
    (tmp_path / "decisions.json").write_text(json.dumps(said))
    result = CliRunner().invoke(app, ["repair", str(file), str(tmp_path / "decisions.json"), "-o", str(tmp_path / "out")])
    assert result.exit_code == 1 and message in result.stderr and not (tmp_path / "out").exists()


def partwise(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.interpreted
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_brackets_trees_and_a_page(tmp_path):
    (tmp_path / "good").write_text(GOOD + RIGHT)
    (tmp_path / "bad").write_text(GOOD + WRONG)
    (tmp_path / "learnt").write_text(2 * GOOD + WRONG)
    (tmp_path / "templates").write_text("f.tag|l.tag\nf.tag\n")
    result = partwise("train", "constituency", tmp_path / "learnt", "-o", tmp_path / "model", "--hash-bits", "8", "--epochs", "3",
                      "--templates", tmp_path / "templates", "-q")  # fmt: skip
    assert result.exit_code == 0, result.output
    common = (
        "suspects",
        tmp_path / "model",
        tmp_path / "bad",
        "--folds",
        "0",
        "--precision",
        "1e-9",
        "--truth",
        tmp_path / "good",
    )
    result = partwise(*common, "--json", "--html", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    worst = said["suspects"][0]
    assert said["truth"]["average_precision"] == 1.0 and said["trees"] == 3 and said["brackets"] == 11
    assert worst["line"] == 4 and worst["example"] == 2 and worst["parts"][0]["given"] == ["VP+NP", 2, 4]
    assert "[VP+NP sees mice > VP] +NP mice" in result.stderr and '"shape": "brackets"' in (tmp_path / "page.html").read_text()
    result = partwise(*common, "--parts", "-o", tmp_path / "out.tsv")
    assert result.exit_code == 0, result.output
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    assert rows[0][4:] == ["part", "given", "believed"] and rows[1][3:] == ["tree 2: sees mice", "2", "VP+NP", "VP"]
    (tmp_path / "other").write_text(GOOD)
    result = partwise(*common[:-1], tmp_path / "other")
    assert result.exit_code == 1 and "must have the trees of" in result.stderr
