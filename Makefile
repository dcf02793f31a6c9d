# Every target does its own set-up: a fresh machine needs make and a Python >= 3.10, nothing installed by hand.
#
#   make demo       words of handwritten digits, read three ways (under a minute after the install)
#   make test       lint, then the quick tests
#   make test-all   lint, then every test, slow ones and those on real corpora included
#   make test-torch tests of partwise.torch, in an environment of its own: torch is large
#   make test-gpu   checks and figures of partwise.torch on a CUDA device
#   make campaign   hostile, damaged and senseless inputs, kills, full disks: some minutes of it (MINUTES=5); docs/reliability.md
#   make campaign-long  the same for hours (MINUTES=720), from where the last one was
#   make test-bounds    tests of kernels, compiled with checks of every index; test-interpreted: in the interpreter
#   make lock       .ci/requirements.lock: what continuous integration installs, with digests
#   make audit      known weaknesses of what is installed (needs the network)
#   make bench      side-by-side timings with other tools
#   make figures    tables and plots of docs/reproduction.md from docs/results, and from finished cells in reproduction/
#   make docs       the site, with its gallery, in build/site (GALLERY=0: without running the examples)
#   make pictures   small pictures of the tasks and the chart of speed in the README
#   make dist       sdist and a pure wheel in dist/, checked
#   make test-lowest   the public face with the lowest versions of all dependencies
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

.PHONY: docs docs-check pictures dist dist-test test-lowest install demo test test-all torch-env test-torch test-gpu wheel wheel-test lint bench figures clean
.PHONY: install demo test test-all test-bounds test-interpreted campaign campaign-long lock audit wheel wheel-test lint style bench figures clean
.DEFAULT_GOAL := install

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "partwise needs Python >= 3.10; none was found. Try: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras, renewed when pyproject.toml changes. LOCKED=1: the versions of .ci/requirements.lock, by digest.
LOCKED ?=
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(if $(LOCKED),$(BIN)/python -m pip install --quiet --require-hashes -r .ci/requirements.lock)
	$(BIN)/python -m pip install --quiet -e ".$(if $(filter-out core,$*),[$*])"
	@touch $@

install: $(VENV)/.installed-core

demo: $(VENV)/.installed-plot
	$(BIN)/partwise demo

lint: style
	$(BIN)/mypy

style: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

# Compiled code of a test run stays inside the checkout, so that runs are self-contained.
test test-all: export PARTWISE_CACHE_DIR = $(CURDIR)/build/cache
# There is a process for each core: threads of the linear algebra in them only wait for each other, minutes in all.
test test-all: export OPENBLAS_NUM_THREADS ?= 1

# mypy keeps one core busy, so it runs beside the tests; what it says comes last.
test: style
	@mkdir -p build; $(BIN)/mypy > build/mypy.txt 2>&1 & types=$$!; status=0; \
	echo '$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" $(PYTEST_ARGS)'; \
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" $(PYTEST_ARGS) || status=$$?; \
	echo $(BIN)/mypy; wait $$types || status=$$?; cat build/mypy.txt; exit $$status

test-all: export PARTWISE_COMPILE_ALL = 1
test-all: lint
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(PYTEST_ARGS)

# Torch is gigabytes: its tests have an environment of their own. TORCH=... names another version or build.
TORCH ?= torch==2.13.0
TORCH_VENV ?= .venv-torch
TORCH_PEERS ?= pytorch-crf transformers accelerate
torch-env:
	@test -x $(TORCH_VENV)/bin/python || $(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/python -m pip install --quiet "$(TORCH)" $(TORCH_PEERS) -e . "pytest>=8" "pytest-xdist>=3.5" "hypothesis>=6.90"

test-torch: export PARTWISE_CACHE_DIR = $(CURDIR)/build/cache
test-torch: export OPENBLAS_NUM_THREADS ?= 1
test-torch: torch-env
	$(TORCH_VENV)/bin/python -m pytest -q -n $(JOBS) --dist loadfile tests/torch tests/contracts/test_torch_*.py $(PYTEST_ARGS)

# On a machine with a CUDA device and PyTorch: every kernel of partwise.torch against float64, then figures beside its peers.
test-gpu:
	PYTHONPATH=src $(PYTHON) -m benchmarks.torch_gpu

# What must hold of every index: once with numba's checks compiled in, once as plain Python.
KERNEL_TESTS := tests/structures tests/features tests/oracles tests/text
test-bounds: export PARTWISE_CACHE_DIR = $(CURDIR)/build/cache-bounds
test-bounds: export NUMBA_BOUNDSCHECK = 1
test-bounds: export PARTWISE_FROZEN = 0
test-bounds: export PARTWISE_COMPILE_ALL = 1
test-interpreted: export PARTWISE_INTERPRET = 1
test-bounds: NOT := slow
test-interpreted: NOT := slow or compiled
test-bounds test-interpreted: export OPENBLAS_NUM_THREADS ?= 1
test-bounds test-interpreted: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not ($(NOT))" $(KERNEL_TESTS) $(PYTEST_ARGS)

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
	$(BIN)/pip-audit --strict --disable-pip --require-hashes --requirement .ci/requirements.lock

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks --short

# what is handed out, and its digests: sha256sum --check SHA256SUMS
DIGESTS = cd dist && { sha256sum *.whl *.tar.gz 2>/dev/null || shasum -a 256 *.whl *.tar.gz; } > SHA256SUMS

# FREEZE=--defaults: only what commands run that set nothing (minutes instead of half an hour)
FREEZE ?=
wheel: $(VENV)/.installed-wheel
	$(BIN)/python -m partwise.freezing build/frozen_code --objects build/frozen --jobs $(JOBS) $(FREEZE)
	PARTWISE_FROZEN_CODE=$(CURDIR)/build/frozen_code $(BIN)/python -m build --wheel --outdir dist

# The wheel in an environment of its own, numba blocked: does every usual command of every task run?
wheel-test: wheel
	$(BIN)/python -m partwise.freezing.trial dist

GALLERY ?= 1
docs: export PARTWISE_CACHE_DIR ?= $(CURDIR)/build/cache
docs: $(VENV)/.installed-docs
	@test ! -f build/site/_static || rm build/site/_static  # a logo that a build left behind when it broke off
	$(BIN)/python -m sphinx -b html -n -W --keep-going -D plot_gallery=$(GALLERY) docs build/site

# The built pages in headless Chromium: dead links, errors of the console, readable at 390 pixels
docs-check: docs $(VENV)/.installed-dev
	$(BIN)/python docs/check_site.py build/site

# after `make docs`: thumbnails of its gallery; and the chart of speed from the table in docs/benchmarks.md
pictures: $(VENV)/.installed-docs
	$(BIN)/python docs/make_pictures.py

# A sdist and a wheel without machine code, which runs everywhere numba does; `make wheel` makes one with it.
dist: $(VENV)/.installed-dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*.whl dist/*.tar.gz
	$(BIN)/check-wheel-contents dist/*.whl
	$(DIGESTS)

# The wheel in an empty environment of each of these Pythons: demo, train, predict
PYTHONS ?= $(PYTHON)
dist-test: dist
	set -e; for python in $(PYTHONS); do \
		rm -rf build/try; $$python -m venv build/try; build/try/bin/python -m pip install --quiet dist/partwise-*-py3-none-any.whl; \
		build/try/bin/partwise --version; \
		build/try/bin/partwise demo --practice build/try/practice; \
		build/try/bin/partwise train tag build/try/practice/train.txt -o build/try/model; \
		build/try/bin/partwise predict build/try/model build/try/practice/test.txt -o build/try/labelled.txt; \
		build/try/bin/partwise evaluate build/try/model build/try/practice/test.txt; \
	done

# Needs uv on the PATH (pip install uv). Old versions of typer import rich at once, which is slower, and say
# nothing of arguments in the table of options; nothing else.
test-lowest:
	uv venv --quiet --clear build/lowest
	uv pip install --quiet --python build/lowest/bin/python --resolution lowest-direct -e ".[frames]"
	uv pip install --quiet --python build/lowest/bin/python "pytest>=8" "hypothesis>=6.90" "safetensors>=0.4"
	PARTWISE_CACHE_DIR=$(CURDIR)/build/lowest/cache build/lowest/bin/python -m pytest -q -m "not slow" \
		--deselect tests/contracts/test_public_face.py::test_the_command_line_says_what_it_can_do_at_once \
		--deselect tests/contracts/test_public_face.py::test_the_table_of_options_is_up_to_date \
		tests/contracts/test_public_face.py tests/bridges tests/cli/test_tables.py tests/files tests/tasks/classification tests/text

figures: $(VENV)/.installed-plot
	$(BIN)/python -m partwise.experiments.publish

clean:
	rm -rf $(VENV) $(TORCH_VENV) build dist demo_output benchmarks/results .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
