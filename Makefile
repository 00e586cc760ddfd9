# Everything that is done with this repository. `make demo` and `make test` set up what they need by themselves.

VENV ?= .venv
PYTHON_BIN := $(VENV)/bin/python
STAMP := $(VENV)/.installed
# Java is looked for (and installed where that is allowed) when Spark is about to start, not before.
WITH_JAVA := JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME &&
# Two processes or more share the tests; those that need Spark come first, in one of them (tests/conftest.py).
PYTEST := $(PYTHON_BIN) -m pytest -q -n auto --maxprocesses=4 --dist worksteal
SHELL := /bin/bash

.DEFAULT_GOAL := help
.PHONY: help venv java demo test test-fast test-slow check format cases clean

help: ## this list
	@echo "Usage: make TARGET"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/    \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

# Done once, and again when the dependencies change.
$(STAMP): pyproject.toml requirements.lock scripts/venv.sh
	@scripts/venv.sh $(VENV)
	@touch $@

venv: $(STAMP) ## make the virtual environment in .venv and install everything into it

java: ## find Java 17+ (or install it with apt where that is allowed) and print its home
	@scripts/java.sh

demo: $(STAMP) ## run three recursive programs on Spark and write their results to ./out
	@$(WITH_JAVA) $(PYTHON_BIN) examples/demo.py

test: $(STAMP) ## run all tests but the slow ones; ARGS="..." goes to pytest
	@$(WITH_JAVA) $(PYTEST) $(ARGS)

# Loops as plain Python: numbers of NumPy warn there where machine words wrap.
test-fast: $(STAMP) ## run the tests that need neither Java nor a compiler, in about a minute
	@EMBERLOG_JIT=off NUMBA_DISABLE_JIT=1 ROWS_EXAMPLES=6 $(PYTEST) -m "not slow and not spark and not apart" \
		-W ignore::RuntimeWarning $(ARGS)

test-slow: $(STAMP) ## run the slow tests
	@$(WITH_JAVA) $(PYTEST) -m slow $(ARGS)

check: $(STAMP) ## lint, check the formatting and the types
	@$(PYTHON_BIN) -m ruff check .
	@$(PYTHON_BIN) -m ruff format --check .
	@$(PYTHON_BIN) -m mypy

format: $(STAMP) ## format the code and fix what ruff can fix
	@$(PYTHON_BIN) -m ruff check --fix .
	@$(PYTHON_BIN) -m ruff format .

# One process: two would write the same files.
cases: $(STAMP) ## rewrite the expected files under tests/cases; read the diff before you commit it
	@$(WITH_JAVA) UPDATE_CASES=1 $(PYTHON_BIN) -m pytest -q tests/test_errors.py tests/test_data_errors.py tests/plan/test_show.py tests/rules/test_text.py tests/sql/test_statements.py
	@git --no-pager diff --stat -- tests/cases

clean: ## remove everything that was made here, the virtual environment too
	rm -rf $(VENV) out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse metastore_db derby.log
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +
