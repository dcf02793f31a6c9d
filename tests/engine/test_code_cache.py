"""Code from the disk cache: what it needs of the process it is loaded into."""

import ast
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
from numba.core.environment import Environment, lookup_environment
from numba.core.registry import cpu_target

import partwise
from partwise.engine.code_cache import CompiledCode, external_symbols, linkable, object_code_only


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


def test_environments_import_nothing(tmp_path):
    """The module of a function that was compiled in is not imported for the sake of its globals."""
    environment = Environment({"__name__": "a_module_that_is_not_there"})
    environment.env_name = "test_environments_import_nothing"
    environment.consts.append("constant")
    path = tmp_path / "code"
    path.write_bytes(pickle.dumps(environment))
    with path.open("rb") as f:
        loaded = CompiledCode(f).load()
    assert loaded.consts == ["constant"] and loaded.can_cache()
    assert lookup_environment("test_environments_import_nothing") is loaded
    assert "a_module_that_is_not_there" not in sys.modules


TALKATIVE = """
import numpy as np
from partwise.engine.compilation import entry, helper

@helper
def tell(x):
    print("helper", x)
    return 2.0 * x

@entry
def run(a):
    return tell(a[0])

assert run(np.array([1.5])) == 3.0
"""


def test_helpers_have_their_environments(tmp_path):
    """Printing from a helper works where it was compiled, and where it comes from disk."""
    script = tmp_path / "talkative.py"
    script.write_text(TALKATIVE)
    environment = {**os.environ, "PARTWISE_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "helper 1.5\n"
    assert len(list((tmp_path / "cache").glob("*.bin"))) == 1


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
    return ast.unparse(decorator).startswith(("helper", "entry", "kernel")) or ".implements(" in ast.unparse(decorator)


def copies_a_slice(node: ast.AST) -> bool:
    """Whether a statement assigns something other than a constant to a slice."""
    if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Constant):
        return False
    targets = [t for target in node.targets for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return any(isinstance(t, ast.Subscript) and any(isinstance(k, ast.Slice) for k in ast.walk(t.slice)) for t in targets)
