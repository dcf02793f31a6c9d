"""Code from the disk cache: what it needs of the process it is loaded into."""

import pickle
import sys

import numba
from numba.core.environment import Environment, lookup_environment
from numba.core.registry import cpu_target

from partwise.compilation import CompiledCode, external_symbols, linkable, object_code_only


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
