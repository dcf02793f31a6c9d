"""Programs that do with other tools what partwise does: one file per tool, each run as a process of its own.

They import neither partwise nor numpy, so that nobody pays for our imports.
"""
