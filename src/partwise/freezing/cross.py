"""numba, made to compile for another machine. What comes out can be linked, but not run here.

numba has no such option: it asks llvmlite which system this is, and keeps an engine that runs what it compiles. Both are replaced
here, in processes that do nothing else.
"""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as binding  # noqa: TID253
from numba.core import codegen  # noqa: TID253


@functools.cache
def compile_for(triple: str) -> None:
    """From now on all that this process compiles is for `triple`. Call it before anything is compiled."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    host, create = binding.Target.from_default_triple(), binding.create_mcjit_compiler

    def engine_for(module: Any, machine: Any, use_lmm: Any = None) -> Any:
        """An engine that runs nothing: it is asked only how the other machine lays out data."""
        engine = create(binding.parse_assembly(f'target triple = "{host.triple}"'), host.create_target_machine())

        class Idle(binding.ExecutionEngine):
            target_data = property(lambda self: machine.target_data)

            def add_module(self, module: Any) -> None:
                pass

            def finalize_object(self) -> None:
                pass

        engine.__class__ = Idle
        return engine

    replaced = {
        (binding, "get_process_triple"): lambda: triple,
        (binding, "create_mcjit_compiler"): engine_for,
        (codegen.JITCPUCodegen, "set_env"): lambda self, name, environment: None,
        (codegen.JITCodeLibrary, "get_pointer_to_function"): lambda self, name: 0,
        (codegen.JITCodeLibrary, "_finalize_specific"): lambda self: None,
    }
    for (owner, name), function in replaced.items():
        setattr(owner, name, function)
