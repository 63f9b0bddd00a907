# Two commands for people: `make lab` and `make test`. Each sets up what it needs; a second run finds it done.
# Assumed: Linux, make, Python 3.11 to 3.14 with its headers, a compiler for C++20.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help lab test checks test-gpu bench course pages wheel constraints system clean

ARGS ?=
VENV ?= .venv
BIN  := $(VENV)/bin

# The interpreter that makes .venv. `test-gpu` and `bench` run with it directly when it is given: `make test-gpu PYTHON=python3`.
SEARCHED   := python3 python3.13 python3.12 python3.11 python3.14
SUPPORTED  := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))
BASE_PYTHON = $(or $(PYTHON),$(shell for p in $(SEARCHED); do $$p -c '$(SUPPORTED)' 2>/dev/null && echo $$p && break; done))
RUN         = $(or $(PYTHON),$(BIN)/python)
NEEDS_VENV  = $(if $(PYTHON),,$(VENV)/.dev)

# "", gpu (CUDA 13, driver 580 or newer) or gpu-cu12 (older drivers and cards). Set it to choose: `make lab EXTRA=gpu-cu12`.
EXTRA      = $(eval EXTRA := $(shell PYTHONPATH=. $(BASE_PYTHON) -B -m grader.hardware))$(EXTRA)
CONSTRAINTS = $(if $(filter gpu-cu12,$(EXTRA)),constraints-cu12.txt,constraints.txt)
comma      := ,
empty      :=
space      := $(empty) $(empty)
extras      = $(if $(strip $(1)),[$(subst $(space),$(comma),$(strip $(1)))])
# Without a GPU the CPU build of torch will do, which is smaller by gigabytes. It may be older than the pin, where only a
# folder of wheels has it. Where there is none, PyPI's build is taken.
CPU_INDEX  := https://download.pytorch.org/whl/cpu
REACHABLE  := import urllib.request; urllib.request.urlopen("$(CPU_INDEX)/torch/", timeout=5)
INDEX       = $(if $(EXTRA),,$(shell $(BIN)/python -c '$(REACHABLE)' 2>/dev/null && echo --extra-index-url $(CPU_INDEX)))
PINS        = $(if $(EXTRA),$(CONSTRAINTS),$(VENV)/pins.txt)
CHOOSE      = $(if $(EXTRA),true,$(BIN)/python .ci/choose-torch $(CONSTRAINTS) $(PINS) $(INDEX))
# Twice quiet: errors are shown, warnings are not. A user cannot act on pip's (about root, or its cache).
INSTALL     = $(BIN)/python -m pip install --disable-pip-version-check -qq -c $(PINS) $(INDEX)

help: ## List the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22
	@printf '\n  ARGS="…" is passed on:  make lab ARGS="--no-browser --port 9000"   make test ARGS="-k lab", which skips the checks\n'
	@printf '  PYTHON=python3 makes test-gpu and bench use that interpreter as it is, with no .venv and no network.\n'

lab: $(VENV)/.lab ## Install what is missing, make your folder and open JupyterLab on the syllabus
	@exec $(BIN)/grader lab $(ARGS)

# Four processes on the two cores of a small machine: many tests wait, for a limit or for a process. Two where only some
# tests are asked for, as each process first imports every test module.
PROCESSES = $(if $(strip $(ARGS)),2,4)
# Compiled test modules are kept, whatever the caller's environment says: all processes, and the next run, need them.
unexport PYTHONDONTWRITEBYTECODE

test: $(VENV)/.dev system $(if $(strip $(ARGS)),,checks) ## Install what is missing, check the code and run all tests
	$(BIN)/python -m pytest -n $(PROCESSES) --dist loadgroup $(ARGS)

checks: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/grader build --check

test-gpu: $(NEEDS_VENV) ## Run the tests that need a GPU
	PYTHONPATH=. $(RUN) -m pytest -m gpu $(ARGS)

bench: $(NEEDS_VENV) ## Measure on this GPU, write benchmarks/results/<gpu>.json and draw the plots
	PYTHONPATH=. $(RUN) -m benchmarks $(ARGS)

course: $(VENV)/.lab ## Build course/ from source/
	$(BIN)/grader build $(ARGS)

pages: $(VENV)/.lab ## Run the notebooks and render them as a static site, build/site/index.html, without solutions
	$(BIN)/grader pages build/site $(ARGS)

# setuptools would add what an earlier build left in build/lib.
wheel: $(VENV)/.lab ## Build dist/*.whl: the package with the notebooks, without solutions; `grader lab` works from it alone
	$(BIN)/grader build --check
	rm -rf build/lib build/bdist.* dist
	$(BIN)/python -m pip wheel --disable-pip-version-check --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls -sh dist

constraints: $(VENV)/.lab ## Pin what pyproject.toml resolves to now, and say what moved (needs the network)
	$(BIN)/python -m venv build/uv && build/uv/bin/python -m pip install --quiet uv
	@for extra in gpu gpu-cu12; do \
		file=constraints$$([ $$extra = gpu ] || echo -cu12).txt; cp $$file build/before.txt; \
		build/uv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --no-annotate \
			--extra $$extra --extra cluster --extra serve --extra dev pyproject.toml -o build/pins.txt; \
		{ echo "# Written by \`make constraints\` from pyproject.toml (extras $$extra, cluster, serve, dev); pip takes it with -c."; \
		  awk '!/python_full_version (>=|<) .3\.1[1-4]/ {sub(/ ;.*/, "")} 1' build/pins.txt; } > $$file; \
		$(BIN)/python .ci/moved build/before.txt $$file; \
	done

clean: ## Remove what was installed here and caches; your work/ stays
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache *.egg-info

$(VENV)/.lab: pyproject.toml constraints.txt constraints-cu12.txt | $(BIN)/pip
	@echo "Installing the course$(if $(EXTRA), with $(EXTRA)) into $(VENV): some minutes and gigabytes, once."
	@$(CHOOSE)
	@$(INSTALL) -e '.$(call extras,$(EXTRA))'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt constraints-cu12.txt | $(BIN)/pip
	@echo "Installing the course and its tools$(if $(EXTRA), with $(EXTRA)) into $(VENV): some minutes and gigabytes, once."
	@$(CHOOSE)
	@$(INSTALL) -e '.$(call extras,dev $(EXTRA))'
	@touch $@ $(VENV)/.lab

# Debian's Python comes without what `venv` needs; it leaves half an environment behind when it fails.
$(BIN)/pip:
	@[ -n "$(BASE_PYTHON)" ] || { echo "Python 3.11 to 3.14 is needed: name yours, as in 'make lab PYTHON=/path/to/python3.12'." >&2; exit 2; }
	@$(BASE_PYTHON) -c '$(SUPPORTED)' || { echo "$(BASE_PYTHON) is not Python 3.11 to 3.14." >&2; exit 2; }
	@PYTHON=$(BASE_PYTHON) .ci/system-packages python-venv
	@$(BASE_PYTHON) -m venv $(VENV) >/dev/null || { \
		rm -rf $(VENV); echo "$(BASE_PYTHON) cannot make a virtual environment; see above." >&2; exit 2; }

system: | $(VENV)/.dev
	@PYTHON=$(BIN)/python .ci/system-packages bubblewrap chromium
