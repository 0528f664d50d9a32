# Needs Python 3.11 or newer and make. Everything else goes into .venv, which is set up again
# when a pyproject.toml or a requirements.txt changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Our own distributions are always installed by path, and together: a package index knows none of
# them, and what it calls burn is another project.
PACKAGES := core plugins/burn-cpu

# Plugins that are not part of the demo: for the tests their dependencies come from
# tests/requirements.txt, and take several gigabytes where nobody says which.
PLUGINS := plugins/burn-nvidia plugins/burn-cuda plugins/burn-opencl plugins/burn-torch

# Plugins that are examples: tested like ours, not part of the demo.
EXAMPLES := examples/burn-strict examples/burn-pure

PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

# The tests use all cores by a process for each; threads of libraries would only be in each other's way.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 POCL_MAX_PTHREAD_COUNT=1

# What a run compiles serves the next: bytecode, of which each program that a test starts needs all,
# and OpenCL programs, which PoCL's own cache still has to parse.
CACHES := PYTHONDONTWRITEBYTECODE= BURN_CACHE=$(HOME)/.cache/burn-tests

# A worker starts with its share of the files in a row, so most fixtures of a module are made once.
PYTEST := $(ONE_THREAD) $(CACHES) $(BIN)/pytest --numprocesses auto --dist worksteal

# Where nobody has to be asked, packages of Debian are installed; else the tests say what they skip.
INSTALL := test "$$(id -u)" = 0 && command -v apt-get > /dev/null && apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends > /dev/null

.PHONY: help demo test test-all lint pocl oclgrind hip bench docs clean

help:
	@echo "make demo    train a network on handwritten digits, on the best device there is"
	@echo "make test    check style and types, run the tests of every change (5 minutes on 2 cores)"
	@echo "make test-all  the same with all that takes longer: see CONTRIBUTING.md (up to an hour)"
	@echo "make bench   compare with NumPy and PyTorch, side by side"
	@echo "make docs    build the documentation into out/docs"
	@echo "make clean   remove .venv, caches and what the examples wrote"
	@echo "PYTHON=python3.13 after any of them chooses the interpreter"

demo: $(VENV)/demo.stamp
	$(BIN)/burn devices
	$(BIN)/python examples/digits.py

test: lint pocl
	$(PYTEST)

test-all: lint pocl oclgrind hip
	$(PYTEST) --all

lint: $(VENV)/test.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# PoCL makes an OpenCL device of the CPU, where there is none.
pocl: $(VENV)/test.stamp
	@$(BIN)/python -c "import sys; from burn_opencl.icd_loader import found_devices as f; sys.exit(not f())" \
	    || { $(INSTALL) pocl-opencl-icd; } \
	    || echo "OpenCL is not tested: no device, and PoCL can be installed by root with apt-get only"

# Oclgrind simulates an OpenCL device and sees each access to memory.
oclgrind:
	@command -v oclgrind > /dev/null \
	    || { $(INSTALL) oclgrind; } \
	    || echo "Accesses of OpenCL kernels are not checked: Oclgrind can be installed by root with apt-get only"

# Debian's clang compiles HIP for GPUs of AMD, without one.
hip:
	@{ command -v clang-15 && command -v ld.lld-15 && test -d /usr/include/hip/amd_detail \
	        && test -d /usr/lib/x86_64-linux-gnu/amdgcn/bitcode; } > /dev/null \
	    || { $(INSTALL) clang-15 lld-15 rocm-device-libs libamdhip64-dev; } \
	    || echo "HIP is not compiled: its compiler can be installed by root with apt-get of Debian 12 only"

bench: $(VENV)/test.stamp
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Open out/docs/index.html, or read it with $(BIN)/python -m mkdocs serve"

clean:
	rm -rf $(VENV) out build dist .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/venv.stamp:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and \
	    'Python 3.11 or newer is needed: choose one with make PYTHON=...')"
	@echo "Setting up $(VENV); the packages have to be downloaded once."
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/demo.stamp: $(VENV)/venv.stamp $(PACKAGES:%=%/pyproject.toml) examples/requirements.txt
	$(PIP) install $(PACKAGES:%=-e ./%) -r examples/requirements.txt
	@touch $@

$(VENV)/docs.stamp: $(VENV)/demo.stamp docs/requirements.txt
	$(PIP) install -r docs/requirements.txt
	@touch $@

$(VENV)/test.stamp: $(VENV)/demo.stamp tests/requirements.txt docs/requirements.txt $(PLUGINS:%=%/pyproject.toml) $(EXAMPLES:%=%/pyproject.toml)
	$(PIP) install -r tests/requirements.txt
	$(PIP) install --no-deps $(PLUGINS:%=-e ./%) $(EXAMPLES:%=-e ./%)
	@touch $@
