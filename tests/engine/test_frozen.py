"""Loops as machine code: all kinds of arguments and results, and nothing is run that does not fit."""

import json
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import frozen_cases
from frozen_cases import Inner, Outer
from partwise.engine import frozen
from partwise.freezing.linking import NoCompiler, c_compiler, group_of, link_all
from partwise.freezing.objects import compiled
from partwise.freezing.recorder import Call, record, recording
from partwise.freezing.targets import native
from partwise.freezing.types import NotWritten, argument

A = np.arange(6.0)


def problem():
    return Outer(A.copy(), Inner(np.zeros((3, 2), np.int32), True), 3)


def all_calls():
    yield frozen_cases.total, (problem(), 0.5, np.ones((2, 2), np.float32, order="F")[:, :1], (1, 2.5))
    yield frozen_cases.several, (A, 3)
    yield frozen_cases.nothing, (A.copy(),)
    yield frozen_cases.itself, (A,)
    yield frozen_cases.fails, (A, 0)
    yield frozen_cases.slow, (A, 10)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Machine code of the loops above, for this processor."""
    try:
        c_compiler(native())
    except NoCompiler as why:
        pytest.skip(str(why))
    calls: dict[Call, None] = {}
    with recording(calls):
        for loop, arguments in all_calls():
            loop(*arguments)
    objects, out = tmp_path_factory.mktemp("objects"), tmp_path_factory.mktemp("frozen")
    made = [compiled(call, objects) for call in calls]
    assert not any(one.refused for one in made)
    again = [compiled(call, objects) for call in calls]  # from the folder
    assert made == again
    link_all(made, native(), objects, out)
    return out


def never():
    raise AssertionError("numba was asked to compile")


@pytest.fixture
def find(folder, monkeypatch):
    """A loop as machine code, which nobody compiles anything else for."""
    monkeypatch.setenv("PARTWISE_FROZEN", str(folder))
    frozen.shelf.cache_clear()
    yield lambda loop, first, elsewhere=never: frozen.find(loop.interpreted, type(first), elsewhere)
    frozen.shelf.cache_clear()


def test_arguments_and_numbers(find):
    for loop, arguments in all_calls():
        found = find(loop, arguments[0])
        mine, theirs = problem(), problem()
        if loop is frozen_cases.total:
            assert found(mine, *arguments[1:]) == loop.interpreted(theirs, *arguments[1:]) == 8.5
            np.testing.assert_array_equal(mine.inner.rows, theirs.inner.rows)
            assert mine.inner.rows.tolist() == [[1, 0], [1, 0], [1, 0]]
    a = A.copy()
    assert find(frozen_cases.nothing, a)(a) is None and a[0] == 7.0


def test_arrays_come_back_and_live_as_long_as_they_are_needed(find):
    found = find(frozen_cases.several, A)
    for _ in range(100):
        n, total, is_large, order, square = found(A, 3)
        assert (n, total, is_large) == (4, 15.0, False) and type(n) is int and type(is_large) is bool
        assert order.dtype == np.int64 and square.dtype == np.float32 and square.shape == (3, 2) and square.flags.writeable
        rest = square[1:]
        del square
        np.testing.assert_array_equal(rest, A.reshape(3, 2)[1:])
    np.testing.assert_array_equal(find(frozen_cases.itself, A)(A), A)


def test_what_a_loop_raises(find):
    found = find(frozen_cases.fails, A)
    with pytest.raises(ValueError, match="as planned"):
        found(A, 1)
    with pytest.raises(MemoryError):
        found(A, 2)
    assert found(A, 0) == 0.0


@pytest.mark.parametrize(
    "arguments",
    [
        (A.astype(np.float32), 3),  # another dtype
        (A.reshape(2, 3), 3),
        (np.arange(12.0)[::2], 3),  # not contiguous
        (A.astype(">f8"), 3),  # of another machine
        (A, 3.0),
        (A, np.int32(3)),
        (A, True),
        (A, 1 << 63),
        (A, None),
        (A, "3"),
        (A,),
        (A, 3, 4),
        (np.frombuffer(b"x" + bytes(48), np.uint8)[1:].view(np.float64), 3),  # not aligned, and read-only
    ],
)
def test_other_types_are_left_to_numba(find, arguments):
    assert find(frozen_cases.several, A, lambda: lambda *given: ("numba", len(given)))(*arguments) == ("numba", len(arguments))


def test_tuples_of_another_class_or_size_are_left_to_numba(find):
    def elsewhere():
        return lambda *given: "numba"

    found = find(frozen_cases.total, problem(), elsewhere)
    good = (problem(), 0.5, np.ones((2, 2), np.float32, order="F")[:, :1], (1, 2.5))
    assert found(*good) == 8.5
    for bad in ((1, 2.5, 3), (1,), Inner(1, 2.5), [1, 2.5], (1, 2)):
        assert found(*good[:3], bad) == "numba"
    assert find(frozen_cases.total, A, elsewhere) is None  # nothing was made for arrays


def test_threads_do_not_get_into_each_others_way(find):
    found, answers = find(frozen_cases.slow, A), {}
    threads = [threading.Thread(target=lambda k=k: answers.__setitem__(k, found(A[: k + 1], 10**5))) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {k: found(A[: k + 1], 10**5) for k in range(6)}


# ---------------------------------------------------------------------------------------------------------------------
# What is not run
# ---------------------------------------------------------------------------------------------------------------------


def edited(folder, tmp_path, change):
    """A copy whose index is changed."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    index = json.loads((copy / "index.json").read_text())
    change(index)
    (copy / "index.json").write_text(json.dumps(index))
    return copy


def sought(path, monkeypatch):
    """What is found there, and the warnings."""
    monkeypatch.setenv("PARTWISE_FROZEN", str(path))
    frozen.shelf.cache_clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = frozen.find(frozen_cases.slow.interpreted, np.ndarray, never)
    frozen.shelf.cache_clear()
    return found, [str(w.message) for w in told]


def test_edited_sources(folder, tmp_path, monkeypatch):
    def change(index):
        index["sources"] = [[file, "0" * 16 if "frozen_cases" in file else digest] for file, digest in index["sources"]]

    assert sought(folder, monkeypatch)[0] is not None
    assert sought(edited(folder, tmp_path, change), monkeypatch) == (None, [])


def test_another_version_a_damaged_library_and_no_folder(folder, tmp_path, monkeypatch):
    other = edited(folder, tmp_path / "a", lambda index: index.update(version="0.0.1"))
    found, told = sought(other, monkeypatch)
    assert found is None and len(told) == 1 and "made for version 0.0.1" in told[0]
    damaged = edited(folder, tmp_path / "b", lambda index: None)
    library = damaged / "common.so"
    data = bytearray(library.read_bytes())
    data[len(data) // 2] ^= 1
    library.write_bytes(data)
    found, told = sought(damaged, monkeypatch)
    assert found is None and len(told) == 1 and "common.so is damaged" in told[0]
    library.unlink()
    found, told = sought(damaged, monkeypatch)
    assert found is None and len(told) == 1 and "common.so" in told[0]
    (damaged / "index.json").write_text("{")
    found, told = sought(damaged, monkeypatch)
    assert found is None and len(told) == 1 and "cannot be read" in told[0]
    found, told = sought(tmp_path / "nowhere", monkeypatch)
    assert found is None and len(told) == 1 and "nowhere" in told[0]
    assert sought("0", monkeypatch) == (None, [])


def test_whatever_byte_of_the_index_is_damaged_nothing_fails(folder, tmp_path, monkeypatch):
    copy, rng = edited(folder, tmp_path, lambda index: None), np.random.default_rng(0)
    whole, said = (copy / "index.json").read_bytes(), 0
    for place in rng.integers(0, len(whole), 60):
        data = bytearray(whole)
        data[place] = rng.integers(32, 127)
        (copy / "index.json").write_bytes(data)
        found, told = sought(copy, monkeypatch)
        said += len(told)
        assert len(told) <= 1 and (found is None or not told)
    assert said > 10


def test_an_older_processor(folder, tmp_path, monkeypatch):
    copy = edited(folder, tmp_path, lambda index: None)
    monkeypatch.setattr(frozen, "is_supported", lambda library: False)
    found, told = sought(copy, monkeypatch)
    assert found is None and len(told) == 1 and "more instructions than this one" in told[0]


def test_without_numba(folder, tmp_path):
    """It is not even imported; where it is needed and cannot be, that is said."""
    blocked = tmp_path / "numba"
    blocked.mkdir()
    (blocked / "__init__.py").write_text("raise ImportError('blocked')")
    program = """
import numpy as np, sys, frozen_cases
print(frozen_cases.slow(np.arange(6.0), 10), "numba" in sys.modules)
try:
    frozen_cases.slow(np.arange(6), 10)
except ImportError as error:
    print(error)
"""
    source = Path(frozen.__file__).parents[2]
    path = ":".join([str(tmp_path), str(source), str(Path(__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": path, "PARTWISE_FROZEN": str(folder), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert first.endswith(" False") and float(first.split()[0]) == pytest.approx(frozen_cases.slow.interpreted(A, 10), rel=1e-12)
    assert "cannot import numba (blocked)" in second and "pip install numba" in second


# ---------------------------------------------------------------------------------------------------------------------
# Recording
# ---------------------------------------------------------------------------------------------------------------------


def test_types_that_are_not_written():
    from numba import typeof

    for value in ("text", 1j, np.float32(1.0), np.zeros(2, np.complex128), [1]):
        with pytest.raises(NotWritten):
            argument(typeof(value), [])
    assert argument(typeof((1, A)), []) == "T!!#iAf81C0"


def test_libraries_are_those_of_structures():
    assert group_of("partwise.structures.chain.problem:ChainProblem") == "chain"
    assert group_of("numpy:ndarray") == group_of("partwise.text.lookup:Lookup") == "common"


def test_a_task_is_recorded_by_being_registered():
    calls = record("rank", thorough=False)
    names = {(call.name, call.first.__name__) for call in calls}
    assert len(calls) >= 5 and any(first == "RankingProblem" for _, first in names)
