"""Tables of every task: the text that its reader knows, in the order of the groups, and answers back in the order of the rows."""

import numpy as np
import pytest

from partwise.tasks.common.registry import BY_VERB, TASKS
from partwise.tasks.common.tables import Grid, TaskTable, in_rows, titled


def grid(**columns):
    return Grid(list(columns), list(columns.values()), "t")


def test_columns_and_groups():
    table = grid(s=[2, 1, 2], Word=["a", "b", "c"])
    assert len(table) == 3 and table.column("s") == [2, 1, 2] and table.groups("s") == [[0, 2], [1]]
    assert table.groups(None) == [[0, 1, 2]] and table.called(("x", "word")) == "Word" and table.others("s") == ["Word"]
    assert np.array_equal(table.matrix(["s"]), [[2.0], [1.0], [2.0]])
    for wrong, message in (
        (lambda: table.column("x"), "t: there is no column 'x'. The columns are: s, Word"),
        (lambda: table.others("s", "Word"), "no column left"),
        (lambda: table.matrix(["Word"]), "the column 'Word' holds something that is no number"),
        (lambda: table.matrix(["x"]), "there is no column 'x'"),
        (lambda: grid(s=[1, None]).groups("s"), "row 1, has no value in the column 's'"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "t, row 1, column 'w': there is no value"),
        (float("nan"), "there is no value"),
        ("", "there is no value"),
        ("a\tb", "a cell holds no tab"),
        ("a\nb", "a cell holds no tab"),
        ([1, 2], "expected a string or a number. Got a list"),
    ],
)
def test_cells_that_cannot_be_text(value, message):
    with pytest.raises(ValueError, match=message):
        grid(w=["a", value]).cells("w")


def test_cells():
    assert grid(w=["a", 1, 2.5, None]).cells("w", "?") == ["a", "1", "2.5", "?"]


TEXTS = {
    "tag": (grid(sentence=[2, 1, 2], w=["a", "b", "c"], y=["A", "B", None]), "a\tA\nc\t?\n\nb\tB\n\n", [0, 2, 1]),
    "segment": (grid(sentence=[1, 1], w=["a", "b"], y=["B-X", "I-X"]), "a\tB-X\nb\tI-X\n\n", [0, 1]),
    "rank": (
        grid(qid=["x", "y", "x"], label=[1, 0, 2], f=[0.5, 1.0, 0.25]),
        "1 qid:1 1:0.5\n2 qid:1 1:0.25\n0 qid:2 1:1\n",
        [0, 2, 1],
    ),
    "parse": (
        grid(sentence=[1, 2, 1], form=["a", "b", "c"], head=[2.0, 0.0, None], deprel=["s", None, "r"]),
        "1\ta\t_\t_\t_\t_\t2\ts\t_\t_\n2\tc\t_\t_\t_\t_\t_\tr\t_\t_\n\n1\tb\t_\t_\t_\t_\t0\t_\t_\t_\n\n",
        [0, 2, 1],
    ),
    "fold": (grid(sequence=["GC", ""], structure=["..", ""]), "id\tsequence\tstructure\nrow 0\tGC\t..\nrow 1\t\t\n", [0, 1]),
    "align": (grid(x=[1], row1=["A-"], row2=["AC"]), "row1\trow2\nA-\tAC\n", [0]),
    "constituency": (grid(tree=["(S\n (A a))"]), "(S (A a))\n", [0]),
}


@pytest.mark.parametrize("verb", TEXTS)
def test_text(verb):
    table, text, order = TEXTS[verb]
    own = BY_VERB[verb].table
    assert isinstance(own, TaskTable) and own.text(table, None, "?") == (text, order)


def test_every_task_has_a_table_but_graphs():
    assert [task.verb for task in TASKS if task.table is None] == ["graph"]
    assert {task.verb for task in TASKS if task.table is not None and task.table.is_text} == set(TEXTS)


@pytest.mark.parametrize(
    ("verb", "columns", "message"),
    [
        ("tag", {"w": ["a"], "y": ["A"]}, "which rows are a sentence. Name the column .* or call it 'sentence'"),
        ("rank", {"f": [1.0]}, "which rows are a query"),
        ("parse", {"sentence": [1], "head": [0]}, "no column 'form' of words"),
        ("fold", {"structure": ["."]}, "there is no column 'sequence'"),
        ("align", {"row1": ["A"]}, "there is no column 'row2'"),
        ("constituency", {"tree": [None]}, "row 0, column 'tree': there is no value"),
        ("constituency", {"x": [1]}, "there is no column 'tree'"),
    ],
)
def test_tables_that_lack_something(verb, columns, message):
    with pytest.raises(ValueError, match=message):
        BY_VERB[verb].table.text(grid(**columns), None)


def test_answers_in_rows():
    assert in_rows({"": ["a", "b"]}, [1, 0], "t") == {"": ["b", "a"]}
    with pytest.raises(ValueError, match="t has 2 rows, but there are 1 answers"):
        in_rows({"": ["a"]}, [1, 0], "t")
    assert titled({"": [1], "head": [2]}, "p") == {"p": [1], "p_head": [2]}
