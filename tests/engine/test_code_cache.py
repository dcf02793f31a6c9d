"""Code from the disk cache: what it needs of the process it is loaded into, and whose it must be. numba as it is, without."""

import ast
import io
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core.environment import Environment, lookup_environment
from numba.core.registry import cpu_target

import partwise
from partwise.engine import code_cache, numba_internals
from partwise.engine.code_cache import CodeFiles, is_ours_alone, opened, sealed
from partwise.engine.numba_internals import CompiledCode, external_symbols, linkable, object_code_only

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")


def test_symbols_that_are_there():
    assert cpu_target.target_context.codegen()  # as when code is loaded
    assert linkable(["NRT_Free", "PyErr_Clear", "numba_do_raise"])
    assert not linkable(["NRT_Free", "a_symbol_that_nobody_has"])


def test_code_without_its_bitcode():
    """Names stay, bodies go; what is declared only is what must be found elsewhere."""

    @numba.njit
    def double(x):
        return x + x

    assert double(2.0) == 4.0
    (result,) = double.overloads.values()
    name, kind, (machine_code, bitcode) = result.library.serialize_using_object_code()
    slim = object_code_only((name, kind, (machine_code, bitcode)))
    assert slim[:2] == (name, kind) and slim[2][0] == machine_code and len(slim[2][1]) < len(bitcode)
    assert linkable(external_symbols(result.library))
    loaded = result.target_context.codegen().unserialize_library(slim)
    assert loaded.get_pointer_to_function(result.fndesc.llvm_cpython_wrapper_name)
    assert object_code_only((name, "bitcode", bitcode)) == (name, "bitcode", bitcode)


def test_environments_import_nothing():
    """The module of a function that was compiled in is not imported for the sake of its globals."""
    environment = Environment({"__name__": "a_module_that_is_not_there"})
    environment.env_name = "test_environments_import_nothing"
    environment.consts.append("constant")
    loaded = CompiledCode(io.BytesIO(pickle.dumps(environment))).load()
    assert loaded.consts == ["constant"] and loaded.can_cache()
    assert lookup_environment("test_environments_import_nothing") is loaded
    assert "a_module_that_is_not_there" not in sys.modules


TALKATIVE = """
import json
import numpy as np
from partwise.engine.compilation import cache_stats, helper, compiled_loop

@helper
def tell(x):
    print("helper", x)
    return 2.0 * x

@compiled_loop
def run(a):
    return tell(a[0])

assert run(np.array([1.5])) == 3.0
print(json.dumps(cache_stats()))
"""


def run_talkative(tmp_path, before="", **environment):
    """Run it as a script, with its own cache; returns what `cache_stats` said and what went to stderr."""
    script = tmp_path / "talkative.py"
    script.write_text(before + TALKATIVE)
    environment = {**os.environ, "PARTWISE_CACHE_DIR": str(tmp_path / "cache"), **environment}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said, stats = done.stdout.splitlines()
    assert said == "helper 1.5"
    return json.loads(stats), done.stderr


COMPILED, FROM_DISK = {"frozen": 0, "hits": 0, "misses": 1}, {"frozen": 0, "hits": 1, "misses": 0}


def test_helpers_have_their_environments(tmp_path):
    """Printing from a helper works where it was compiled, and where it comes from disk."""
    assert run_talkative(tmp_path) == (COMPILED, "")
    assert run_talkative(tmp_path) == (FROM_DISK, "")
    assert len(list((tmp_path / "cache").glob("*.bin"))) == 1


def test_what_is_damaged_is_compiled_again(tmp_path):
    """Machine code with one wrong bit would crash, or worse: compute something else."""
    run_talkative(tmp_path)
    (file,) = (tmp_path / "cache").glob("*.bin")
    whole = file.read_bytes()
    assert opened(whole) is not None
    at = whole.index(b"\x7fELF") + 1000 if b"\x7fELF" in whole else len(whole) // 2
    for damaged in (whole[: len(whole) // 2], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
        file.write_bytes(damaged)
        assert run_talkative(tmp_path) == (COMPILED, "")
        assert run_talkative(tmp_path) == (FROM_DISK, "")  # it was put right


@posix
def test_what_others_can_write_is_not_run(tmp_path):
    run_talkative(tmp_path)
    (file,) = (tmp_path / "cache").glob("*.bin")
    file.chmod(0o666)
    assert run_talkative(tmp_path) == (COMPILED, "")
    assert file.stat().st_mode & 0o777 == 0o600 and run_talkative(tmp_path) == (FROM_DISK, "")
    before = file.stat()
    (tmp_path / "cache").chmod(0o777)
    for _ in range(2):
        found, said = run_talkative(tmp_path)
        assert found == COMPILED and "since others can write to it" in said
    assert file.stat() == before and (tmp_path / "cache").stat().st_mode & 0o777 == 0o777


# ---------------------------------------------------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("PARTWISE_CACHE_DIR", str(tmp_path / "above" / "cache"))
    return CodeFiles(run_talkative, np.ndarray, "stamp")


def test_files(files):
    assert files.read("key") is None
    files.write("key", b"code")
    assert files.read("key") == b"code" and files.read("other") is None
    files.write("key", b"newer")
    assert files.read("key") == b"newer"
    if sys.platform != "win32":
        assert files.path.stat().st_mode & 0o777 == 0o700 and files.file("key").stat().st_mode & 0o777 == 0o600
    files.clear()
    assert files.read("key") is None and not list(files.path.iterdir())


def test_every_bit_of_a_file_counts():
    content = sealed(b"some code")
    assert opened(content) == b"some code" and opened(sealed(b"")) == b""
    for k in range(len(content)):
        assert opened(content[:k]) is None
        for bit in range(8):
            assert opened(content[:k] + bytes([content[k] ^ (1 << bit)]) + content[k + 1 :]) is None
    assert opened(content + b"x") is None and opened(b"some code") is None


@posix
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_directory_that_others_can_write_to_is_left_alone(files, mode):
    files.write("key", b"code")
    files.path.chmod(mode)
    with pytest.warns(RuntimeWarning, match="since others can write to it"):
        assert files.read("key") is None
    files.write("other", b"code")
    files.clear()
    assert [file.name for file in files.path.iterdir()] == [files.file("key").name]
    assert files.path.stat().st_mode & 0o777 == mode  # somebody named it: it is not ours to change
    files.path.chmod(0o750)
    assert files.read("key") == b"code"


@posix
def test_our_own_folder_is_made_safe(tmp_path, monkeypatch):
    monkeypatch.delenv("PARTWISE_CACHE_DIR", raising=False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(code_cache, "default_directory", lambda: tmp_path / "partwise")
    files = CodeFiles(run_talkative, np.ndarray, "stamp")
    files.write("key", b"code")
    files.path.chmod(0o775)  # made with another umask, by a version that did not care
    files.file("key").chmod(0o664)
    assert files.read("key") is None and files.path.stat().st_mode & 0o777 == 0o700
    files.write("key", b"code")
    assert files.read("key") == b"code"


@posix
def test_what_belongs_to_others_is_left_alone(files, monkeypatch):
    """Whatever its modes; but the administrator's is as good as our own."""
    files.write("key", b"code")
    user, other = os.geteuid(), 12345
    if user == 0:
        os.chown(files.path, other, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert files.read("key") is None
    files.write("other", b"code")
    assert not files.file("other").exists()
    assert is_ours_alone(SimpleNamespace(st_uid=0, st_mode=0o100644))
    assert not is_ours_alone(SimpleNamespace(st_uid=0, st_mode=0o100666))
    assert not is_ours_alone(SimpleNamespace(st_uid=other, st_mode=0o100600))


@posix
def test_links_are_not_followed(files, tmp_path):
    files.write("key", b"code")
    files.file("key").rename(tmp_path / "elsewhere")
    files.file("key").symlink_to(tmp_path / "elsewhere")
    assert files.read("key") is None


def test_where_nothing_can_be_kept(files, monkeypatch):
    assert code_cache.why_not_kept(files.path) == ""
    files.path.parent.write_text("a file where the directory should be")
    with pytest.warns(RuntimeWarning, match="cannot be kept in .*every process compiles for itself") as told:
        files.write("key", b"code")
        files.write("other", b"code")
    assert len(told) == 1
    files.clear()
    assert files.read("key") is None
    assert "cannot be written to" in code_cache.why_not_kept(files.path)


@posix
def test_what_is_announced_is_true(files, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.delenv("PARTWISE_QUIET", raising=False)
    for mode, said in ((0o700, "kept on disk"), (0o777, "not kept, for others may write")):
        files.path.mkdir(parents=True, exist_ok=True)
        files.path.chmod(mode)
        monkeypatch.setattr(code_cache, "_announced", False)
        files.announce()
        assert said in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------------------------
# numba as it is
# ---------------------------------------------------------------------------------------------------------------------

FIT = """
import json
import numpy as np
import partwise
from partwise import Classifier
from partwise.engine import numba_internals
from partwise.engine.compilation import cache_stats
x = np.random.default_rng(0).normal(size=(9, 3))
model = Classifier(solver="dca", max_epochs=3, random_state=0).fit(x, np.arange(9) % 3)
print(json.dumps({"w": model.weights_.tolist(), "plain": numba_internals.PLAIN, **cache_stats()}))
"""


def test_numba_is_as_we_know_it():
    assert not numba_internals.lacking(numba_internals.EXPECTED), f"tested with {numba_internals.TESTED}"
    assert numba_internals.lacking([(numba, "njit nothing_of_the_kind")]) == ["nothing_of_the_kind"]


def test_nothing_else_looks_inside_numba():
    """What is documented for all may be used everywhere."""
    inside = re.compile(r"(numba\.(core|_[a-z]|.*\._[a-z])|llvmlite\.binding)")
    for path in Path(partwise.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if ("numba" not in text and "llvmlite" not in text) or path.name in ("numba_internals.py", "cross.py"):
            continue
        for node in ast.walk(ast.parse(text)):
            names = [ast.unparse(node)] if isinstance(node, ast.Attribute) else []
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [f"{getattr(node, 'module', '')}.{a.name}".removeprefix(".") for a in node.names]
            assert not any(map(inside.match, names)), f"{path.name}, line {node.lineno}"


@pytest.mark.slow
def test_numba_as_it_is_learns_the_same(tmp_path):
    found = []
    for plain in ("0", "1"):
        environment = {**os.environ, "PARTWISE_PLAIN_NUMBA": plain}
        if plain == "1":
            environment["PARTWISE_CACHE_DIR"] = str(tmp_path / "cache")
        done = subprocess.run([sys.executable, "-c", FIT], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr
        found.append(json.loads(done.stdout))
    ours, plain = found
    assert not ours["plain"] and plain["plain"] and plain["hits"] == 0 and plain["misses"] > 0
    np.testing.assert_allclose(plain["w"], ours["w"], rtol=1e-10)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("lost", "name"),
    [("from numba.core.compiler import CompileResult as owner", "_rebuild"), ("import numba.core.caching as owner", "_Cache")],
)
def test_where_numba_has_changed_it_is_used_as_it_is(tmp_path, lost, name):
    """And says so. The first attribute is looked for, the second cannot even be imported."""
    stats, said = run_talkative(tmp_path, f"{lost}\nimport numba\ndel owner.{name}\n")
    assert stats == COMPILED and "every process compiles for itself" in said
    assert not (tmp_path / "cache").exists()


def test_compiled_code_copies_by_loops():
    """`x[a:b] = array` costs three seconds of compiling, for the text of an error that cannot occur: use `numerics.copy`."""
    found = []
    for path in Path(partwise.__file__).parent.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and any(map(is_compiled, function.decorator_list)):
                found += [f"{path.name}:{node.lineno}" for node in ast.walk(function) if copies_a_slice(node)]
    assert not found


def is_compiled(decorator: ast.expr) -> bool:
    """Whether a function with this decorator is run by compiled loops."""
    return ast.unparse(decorator).startswith(("helper", "loop", "kernel")) or ".implements(" in ast.unparse(decorator)


def copies_a_slice(node: ast.AST) -> bool:
    """Whether a statement assigns something other than a constant to a slice."""
    if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Constant):
        return False
    targets = [t for target in node.targets for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return any(isinstance(t, ast.Subscript) and any(isinstance(k, ast.Slice) for k in ast.walk(t.slice)) for t in targets)


def test_code_on_disk_finds_what_code_is_made_of_and_nothing_else():
    import io
    import os
    import pickle

    from partwise.engine.numba_internals import CompiledCode

    class Call:
        def __init__(self, function, *arguments):
            self.call = function, arguments

        def __reduce__(self):
            return self.call

    for hostile in (Call(os.system, "true"), Call(eval, "1"), Call(getattr, "a", "upper"), Call(subprocess.Popen, ["true"])):
        with pytest.raises(pickle.UnpicklingError, match="compiled code has no use for"):
            CompiledCode(io.BytesIO(pickle.dumps(hostile))).load()
    assert CompiledCode(io.BytesIO(pickle.dumps(np.dtype("f8")))).load() == np.float64
