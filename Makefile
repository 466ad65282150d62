# Two commands matter: `make run` shows Glee working, `make test` proves it. Both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
LAUNCHER := glee/sandbox/launcher

.PHONY: help run test check fix bench setup docs lock clean

help: ## what can be done here
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP) $(LAUNCHER) $(VENV)/.system ## a virtual environment with everything Glee and its tests need

$(STAMP): pyproject.toml setup.py constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Glee needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "python3 -m venv failed; on Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "installing Glee and its tools into $(VENV) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --config-settings editable_mode=compat --editable '.[dev]'
	@touch $(STAMP)

# What the tests use of the system, where that can be had without asking: by root on Debian and its kin.
SYSTEM := docker.io busybox-static
$(VENV)/.system: $(STAMP)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing $(SYSTEM) ..."; \
	  { dpkg -s $(SYSTEM) || { apt-get update && apt-get install -y --no-install-recommends $(SYSTEM); }; } \
	    >$(VENV)/system.log 2>&1 || echo "that failed, and some tests will be skipped: see $(VENV)/system.log"; \
	fi
	@touch $@

$(LAUNCHER): $(LAUNCHER).c scripts/build_launcher.py | $(STAMP)
	@$(BIN)/python scripts/build_launcher.py

run: $(STAMP) $(LAUNCHER) ## a sample project with one tool of each kind: listed, linted, tested and called
	@$(BIN)/python examples/tour.py

test: $(STAMP) $(LAUNCHER) $(VENV)/.system ## all tests
	@$(BIN)/python -m pytest

check: $(STAMP) ## lint, formatting, types, import order
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python scripts/build_launcher.py --strict

fix: $(STAMP) ## what can be put right by machine
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(STAMP) $(LAUNCHER) ## the performance tables, beside peers; ARGS=--quick for a short run
	@$(BIN)/python -m bench $(ARGS)

docs: $(STAMP) ## writes docs/reference anew
	@$(BIN)/python scripts/reference.py

lock: $(STAMP) ## pins what is installed now
	@$(BIN)/pip freeze --exclude-editable --exclude glee | sort -f > constraints.txt

clean: ## removes everything that was made here
	rm -rf $(VENV) $(LAUNCHER) .bench build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
