# Everything a fresh machine needs is Python 3.11 (or newer) and make; each target does its own set-up.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
PY     := $(VENV)/bin/python
READY  := $(VENV)/.ready

KERNEL_TESTS  := tests/kernels tests/testing
SIDE_BY_SIDE  := -n 2 --dist loadfile

# COVERAGE=1 also measures which lines the tests run. It slows tests by half on Python 3.11; the workflow sets it on 3.13.
COVERED := $(if $(COVERAGE),--cov --cov-report=)

.DEFAULT_GOAL := help
.PHONY: help demo demo-embedded test soak test-nojit check format conformance bench docs coverage wheel clean

help:  ## show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 16

demo: $(READY)  ## run the main job: files, Spark Structured Streaming, standing queries (about a minute)
	@echo "==> demo: a feed of files through Spark into standing queries (the first run compiles kernels)"
	$(PY) examples/pipeline.py

demo-embedded: $(READY)  ## the same kind of queries in this process alone, without Spark
	@echo "==> demo-embedded: queries over a changing graph (the first run compiles kernels)"
	$(PY) examples/demo.py

test: $(READY)  ## check, then every test, then the kernels again without the JIT
	@$(MAKE) --no-print-directory check
	@echo "==> test: every test and every fenced block of the docs"
	@$(PY) -c "from kpg.kernels.warm import warm; warm()"
	$(PY) -m pytest -q $(SIDE_BY_SIDE) $(COVERED)
	@$(MAKE) --no-print-directory test-nojit
	@$(if $(COVERAGE),$(MAKE) --no-print-directory coverage)

soak: $(READY)  ## ten minutes of wild clients against a server; memory, files and threads must stay flat
	@echo "==> soak: random installs, cancels, kills of clients and limits, for $(or $(SECONDS),600) s"
	$(PY) -m tests.server.soaking --seconds $(or $(SECONDS),600)

test-nojit: $(READY)  ## kernels against their twins: as plain Python, then with bounds checks
	@echo "==> test-nojit: kernels and twins as plain Python"
	NUMBA_DISABLE_JIT=1 HYPOTHESIS_PROFILE=nojit $(PY) -m pytest -q -m "not jit" $(SIDE_BY_SIDE) $(if $(COVERAGE),$(COVERED) --cov-append) $(KERNEL_TESTS)
	@echo "==> test-nojit: kernels and twins with bounds checks"
	NUMBA_BOUNDSCHECK=1 HYPOTHESIS_PROFILE=nojit \
		$(PY) -m pytest -q -m "not jit" $(SIDE_BY_SIDE) $(KERNEL_TESTS)

check: $(READY)  ## lint, types, architecture
	@echo "==> check: lint"
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check --quiet .
	@echo "==> check: types"
	$(VENV)/bin/mypy
	@echo "==> check: architecture"
	$(PY) -m pytest -q tests/test_architecture.py

format: $(READY)  ## format the code and fix what ruff can fix
	@echo "==> format: ruff check --fix, ruff format"
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

conformance: $(READY)  ## check the citations of docs/conformance.md and write its count
	@echo "==> conformance: every cited test exists"
	$(PY) tools/conformance.py

bench: $(READY)  ## run the benchmarks; one of them: make bench ONLY=E1; small: make bench SCALE=0.05
	@echo "==> bench: $(or $(ONLY),all experiments)"
	$(PY) -m kpg.cli bench $(or $(ONLY),all) $(if $(SCALE),--scale $(SCALE))

docs: $(READY)  ## build the documentation site into site/, without network
	@echo "==> docs: site/"
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --strict
	@echo "open site/index.html"

coverage: $(READY)  ## which lines the tests run, after `make test COVERAGE=1`; details in htmlcov/
	@echo "==> coverage: lines that tests run (compiled kernels count in their runs as plain Python)"
	@$(PY) tools/coverage_table.py
	@$(VENV)/bin/coverage html --quiet

wheel: $(READY)  ## build the wheel into dist/
	@echo "==> wheel: dist/"
	$(PY) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls -l dist/*.whl

clean:  ## remove the environment, caches and build products
	@echo "==> clean"
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis site htmlcov .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@echo "==> set-up: $(VENV) (once, and again when pyproject.toml changes)"
	@test -n "$(PYTHON)" || { echo "no python3.11 or python3 found; say which: make PYTHON=/path/to/python"; exit 1; }
	@test -x $(PY) || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is older than 3.11; say which: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@
