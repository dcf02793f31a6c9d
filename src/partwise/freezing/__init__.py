"""Machine code for the wheel: what the usual commands run, compiled before anybody installs it.

``python -m partwise.freezing OUT`` writes one library for each structure, and what there is to know about it, into a folder;
`partwise.engine.frozen` runs what is in it, without numba. Four steps, each a module:

``recorder``  which loops the usual commands call, and with arguments of which types: all tasks of the registry are tried, on
              their tiny workloads, in the interpreter
``objects``   numba compiles each of them for a kind of processor; what comes out is kept, until a source changes
``calls.c``   turns a call from Python into one of a compiled loop; ``runtime.c`` stands for what numba's loops take from numba
``linking``   a C compiler, or zig, makes libraries of these
"""
