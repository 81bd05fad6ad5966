# `make experiment TOPO=fattree` and `make test` install what is missing, then do what they say. `make help` lists the rest.

# The interpreter that .venv is made from: the system's own, since only that one sees the distribution's Mininet.
PYTHON = /usr/bin/python3
VENV = .venv/bin
PACKAGES = topo controller endpoints experiments

# Tests that need no root run in parallel; the others make network namespaces and run one after the other. Folders that
# this checkout does not have are left out.
UNIT_TESTS = $(wildcard tests/unit tests/sim tests/conformance)
E2E_TESTS = $(wildcard tests/e2e tests/docs)

# Recipes read what the user gave as shell variables ("$$TOPO"), so that no value is ever parsed as shell text. ARGS
# alone is text for the shell, handed on as it is.
export PYTHON TOPO K BW SIZE MTU LOSS REORDER SEED ALGORITHM ITERATIONS FILE

.DEFAULT_GOAL = help
.NOTPARALLEL:
.PHONY: help setup doctor experiment compare run sweep cli chaos test unit e2e test-stock lint format bench stop clean distclean lock

help:  ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*  ## /  \1\t/p' Makefile | expand -t 16
	@echo
	@echo 'For experiment: TOPO=fattree K=4 BW=50 SIZE=1MiB MTU=4096 LOSS=1% REORDER=5% SEED=7'
	@echo '                ALGORITHM=mcast_allgather,ring ITERATIONS=3 ARGS="--capture h1"'
	@echo 'For tests:      PYTEST_ARGS="-k name -x"      For setup: PYTHON=/usr/bin/python3.12'

setup:  ## install what is missing: system packages, .venv, locked Python packages
	@.ci/setup

doctor: setup  ## what this machine has, what will be used, what is missing
	@.ci/as-root $(VENV)/treecast doctor $(ARGS)

experiment: COMMAND = run
experiment: setup  ## run one verified collective; TOPO, K, BW, SIZE, … as below
compare: COMMAND = compare
compare: setup  ## Allgathers in turns, in one table, Open MPI's too; TOPO, K, … as below
experiment compare:
	@set -- $(COMMAND) --topo "$${TOPO:-fattree}$${K:+,k=$$K}"; \
	if [ -n "$$BW" ]; then set -- "$$@" --bw "$$BW"; fi; \
	if [ -n "$$SIZE" ]; then set -- "$$@" --size "$$SIZE"; fi; \
	if [ -n "$$MTU" ]; then set -- "$$@" --mtu "$$MTU"; fi; \
	if [ -n "$$LOSS" ]; then set -- "$$@" --loss "$$LOSS"; fi; \
	if [ -n "$$REORDER" ]; then set -- "$$@" --reorder "$$REORDER"; fi; \
	if [ -n "$$SEED" ]; then set -- "$$@" --seed "$$SEED"; fi; \
	if [ -n "$$ALGORITHM" ]; then set -- "$$@" --algorithm "$$ALGORITHM"; fi; \
	if [ -n "$$ITERATIONS" ]; then set -- "$$@" --iterations "$$ITERATIONS"; fi; \
	exec .ci/as-root $(VENV)/treecast "$$@" $(ARGS)

run: experiment  ## the same as experiment

sweep: setup  ## run a grid of scenarios, or go on with it: FILE=sweep.yaml, or FILE=paper
	@exec .ci/as-root $(VENV)/treecast sweep "$${FILE:?write FILE=sweep.yaml, or FILE=paper}" $(ARGS)

cli: setup  ## a console on a running fabric: Mininet's, with collectives and faults; TOPO, K, BW, …
	@set -- --topo "$${TOPO:-fattree}$${K:+,k=$$K}"; \
	if [ -n "$$BW" ]; then set -- "$$@" --bw "$$BW"; fi; \
	if [ -n "$$MTU" ]; then set -- "$$@" --mtu "$$MTU"; fi; \
	if [ -n "$$SEED" ]; then set -- "$$@" --seed "$$SEED"; fi; \
	exec .ci/as-root $(VENV)/treecast cli "$$@" $(ARGS)

chaos: setup  ## 40 runs under random faults, each judged; SEED, ARGS="--count 10"
	@exec .ci/as-root $(VENV)/treecast chaos $${SEED:+--seed "$$SEED"} $(ARGS)

test: setup  ## all tests; both halves run even if the first fails
	@status=0; \
	$(MAKE) --no-print-directory unit || status=1; \
	$(MAKE) --no-print-directory e2e || status=1; \
	exit $$status

unit: setup  ## tests that need no root: units, virtual time, conformance
	$(VENV)/python -m pytest -n auto $(PYTEST_ARGS) $(UNIT_TESTS)

e2e: setup  ## tests in emulated networks (root, or sudo)
	$(if $(E2E_TESTS),.ci/as-root $(VENV)/python -m pytest -p no:xdist $(PYTEST_ARGS) $(E2E_TESTS),@echo 'no tests/e2e here')

# Debian's kernel, started as a process: it takes minutes, since starting programs is slow there.
test-stock:  ## chosen tests on a stock kernel: kernel datapath, netem
	@.ci/setup user-mode-linux
	@.ci/as-root tests/stock/boot -m stock $(PYTEST_ARGS) tests/e2e

lint: setup  ## ruff, mypy, import rules; all of them run, whichever fails
	@status=0; \
	for check in 'ruff check' 'ruff format --check' mypy 'lint-imports --no-logo'; do \
		echo "$$check"; $(VENV)/$$check || status=1; \
	done; \
	exit $$status

format: setup  ## put the sources into their standard form
	$(VENV)/ruff check --fix --select I
	$(VENV)/ruff format

bench: setup  ## cost per packet beside its rival; parts of the limit; service in failures
	@.ci/as-root $(VENV)/python -m experiments.bench $(ARGS)

stop: setup  ## take down what a killed run has left behind
	@.ci/as-root $(VENV)/treecast clean

clean:  ## stop, then remove caches (results stay)
	@if [ -e .venv/.stamp-python ]; then .ci/as-root $(VENV)/treecast clean; fi
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build
	find $(PACKAGES) tests -name __pycache__ -prune -exec rm -rf {} +

distclean: clean  ## clean, then remove .venv
	rm -rf .venv *.egg-info

# Resolved for every Python version at once; uv lives in a throw-away place and never in .venv.
lock:  ## resolve the Python dependencies anew
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && \
	"$$PYTHON" -m venv "$$tmp/venv" && "$$tmp/venv/bin/pip" install -q 'uv>=0.9' && \
	compile() { "$$tmp/venv/bin/uv" pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
		--no-annotate --no-emit-index-url --no-emit-find-links "$$@"; } && \
	compile requirements/build.in $(UPGRADE) -o requirements/build.lock && \
	compile pyproject.toml --extra dev -c requirements/build.in --build-constraint requirements/build.lock $(UPGRADE) \
		-o requirements/treecast.lock
