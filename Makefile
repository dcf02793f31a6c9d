# Every target does its own set-up: a fresh machine needs make and a Python >= 3.10, nothing installed by hand.
#
#   make demo       words of handwritten digits, read three ways (under a minute after the install)
#   make test       lint, then the quick tests
#   make test-all   lint, then every test, slow ones and those on real corpora included
#   make campaign   hostile, damaged and senseless inputs, kills, full disks: some minutes of it (MINUTES=5); docs/reliability.md
#   make campaign-long  the same for hours (MINUTES=720), from where the last one was
#   make test-bounds    tests of kernels, compiled with checks of every index; test-interpreted: in the interpreter
#   make lock       .ci/requirements.lock: what continuous integration installs, with digests
#   make audit      known weaknesses of what is installed (needs the network)
#   make bench      side-by-side timings with other tools
#   make figures    tables and plots of docs/reproduction.md from docs/results, and from finished cells in reproduction/
#   make wheel      a wheel with machine code for this platform (dist/); long: hundreds of loops are compiled, and kept in build/
#   make lint       ruff (rules and format), import-linter (layers) and mypy
#   make install    the package alone, editable, in .venv
#   make clean      remove everything these targets made

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10 python; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then echo $$p; break; fi; done)
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
PYTEST_ARGS ?=

# Corpora for tests and benchmarks: without them those tests skip and say so.
ifneq ($(wildcard ../shared/data),)
export PARTWISE_DATA ?= $(abspath ../shared/data)
endif

.PHONY: install demo test test-all test-bounds test-interpreted campaign campaign-long lock audit wheel wheel-test lint bench figures clean
.DEFAULT_GOAL := install

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "partwise needs Python >= 3.10; none was found. Try: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras, renewed when pyproject.toml changes.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".$(if $(filter-out core,$*),[$*])"
	@touch $@

install: $(VENV)/.installed-core

demo: $(VENV)/.installed-plot
	$(BIN)/partwise demo

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

# Compiled code of a test run stays inside the checkout, so that runs are self-contained.
test test-all: export PARTWISE_CACHE_DIR = $(CURDIR)/build/cache
# There is a process for each core: threads of the linear algebra in them only wait for each other, minutes in all.
test test-all: export OPENBLAS_NUM_THREADS ?= 1

test: lint
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" $(PYTEST_ARGS)

test-all: export PARTWISE_COMPILE_ALL = 1
test-all: lint
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(PYTEST_ARGS)

# What must hold of every index: once with numba's checks compiled in, once as plain Python.
KERNEL_TESTS := tests/structures tests/features tests/oracles tests/text
test-bounds: export PARTWISE_CACHE_DIR = $(CURDIR)/build/cache-bounds
test-bounds: export NUMBA_BOUNDSCHECK = 1
test-bounds: export PARTWISE_FROZEN = 0
test-bounds: export PARTWISE_COMPILE_ALL = 1
test-interpreted: export PARTWISE_INTERPRET = 1
test-bounds test-interpreted: export OPENBLAS_NUM_THREADS ?= 1
test-bounds test-interpreted: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" $(KERNEL_TESTS) $(PYTEST_ARGS)

campaign: MINUTES ?= 5
campaign-long: MINUTES ?= 720
campaign campaign-long: export PARTWISE_CACHE_DIR = $(CURDIR)/build/cache
campaign campaign-long: export PYTHONPATH = $(CURDIR)/tests
campaign campaign-long: $(VENV)/.installed-dev
	nice $(BIN)/python -m campaign --minutes $(MINUTES) $(CAMPAIGN_ARGS)

# Versions with digests, for every system and Python, and no address to get them from:
# pip install --require-hashes -r .ci/requirements.lock
lock: $(BIN)/python
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.10 --generate-hashes --no-header --no-annotate \
		--quiet --output-file .ci/requirements.lock

audit: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --requirement .ci/requirements.lock --require-hashes

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks --short

# FREEZE=--defaults: only what commands run that set nothing (minutes instead of half an hour)
FREEZE ?=
wheel: $(VENV)/.installed-wheel
	$(BIN)/python -m partwise.freezing build/frozen_code --objects build/frozen --jobs $(JOBS) $(FREEZE)
	PARTWISE_FROZEN_CODE=$(CURDIR)/build/frozen_code $(BIN)/python -m build --wheel --outdir dist

# The wheel in an environment of its own, numba blocked: does every usual command of every task run?
wheel-test: wheel
	$(BIN)/python -m partwise.freezing.trial dist

figures: $(VENV)/.installed-plot
	$(BIN)/python -m partwise.experiments.publish

clean:
	rm -rf $(VENV) build dist demo_output benchmarks/results .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
