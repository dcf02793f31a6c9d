"""How compiled loops are put together: helpers are optimised once, within the loop that calls them.

numba optimises every function it meets, with all that it calls, and turns it into machine code, before it links it into its
caller, where all of that is done again: code at the bottom of ten calls is optimised ten times, and nine of the ten are thrown
away. Here helpers stay as they were written until the loop is complete. Compiling takes half the time; the code is the same.
"""

from __future__ import annotations

import ctypes
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.environment import lookup_environment


class NoEnvironments:
    """What a helper sees of the machine-code generator: its environment has no address yet (`place_environments`)."""

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing to write to."""


class HelperLibrary(JITCodeLibrary):
    """Code that is only ever linked into other code: not optimised, not turned into machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: Python does not call helpers."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> NoEnvironments:
        """See there."""
        return NoEnvironments()


class HelperCompiler(Compiler):
    """numba's compiler, writing into a `HelperLibrary`."""

    def define_pipelines(self) -> list:
        """Those of numba."""
        if self.state.library is None:
            self.state.library = HelperLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


def place_environments(library: Any) -> None:
    """Tell a finished loop where the environments of its helpers are: printing from compiled code looks at them."""
    engine = library.codegen._engine
    for variable in library._final_module.global_variables:
        environment = lookup_environment(variable.name)
        address = 0 if environment is None else engine.get_global_value_address(variable.name)
        if address:
            ctypes.c_void_p.from_address(address).value = id(environment)
