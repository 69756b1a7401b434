# Two targets matter: `make demo` and `make test`. Both set up .venv from requirements.lock.
PYTHON ?= python3
BIN := .venv/bin
# Idle worker threads that spin slow down small models by up to ten times.
export OMP_WAIT_POLICY := PASSIVE

.PHONY: demo test format clean

demo: .venv/installed
	$(BIN)/snakemake --cores all
	@echo
	@echo "Tables:  results/demo/{gras,lvlm_fairness,vl_bicle}/tables/"
	@echo "Figures: results/demo/{gras,lvlm_fairness,vl_bicle}/figures/"
	@echo "Report:  results/demo/report/index.html"

test: .venv/installed
	$(BIN)/snakefmt --check Snakefile workflow/Snakefile workflow/rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/snakemake --lint
	$(BIN)/python -m pytest

format: .venv/installed
	$(BIN)/snakefmt Snakefile workflow/Snakefile workflow/rules
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The marker is written last, so an interrupted installation is repeated.
.venv/installed: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	touch $@

# Stored answers may have cost GPU weeks: they stay.
clean:
	find results -mindepth 1 -maxdepth 1 ! -name answers -exec rm -rf {} +
	rm -rf .snakemake
