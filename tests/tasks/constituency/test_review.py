"""The page of suspects of trees in brackets: where trees stand, what is written in their place, and a real browser."""

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


def test_edit_and_accept_in_a_browser(tmp_path):
    """The quick one: brackets that differ are marked, what is no tree or another sentence is refused; the rest stays."""
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
    accepted = "( (S (NP-SBJ (PRP sie)) (VBP bäckt) (NP (NN kuchen))))"
    edited = "(S (XP (DT the)\n (NN dog))\n (VP (VBZ barks)))"
    wanted = TEXT.decode().replace(FIRST, accepted).replace("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", edited)
    assert (tmp_path / "out").read_bytes() == wanted.encode()


@pytest.mark.parametrize(
    ("new", "message"),
    [("(S (NP (DT the) (NN dog)) (VBZ barks)", "is never closed"), ("(S (DT the) (NN dog))", "more than labels")],
)
def test_repair_refuses_what_is_no_tree_of_the_sentence(tmp_path, new, message):
    import json

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
