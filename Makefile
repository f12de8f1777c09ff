# Everything runs in .venv, which every target makes when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: specs test lint setup clean models benchmarks

specs: setup
	$(BIN)/python -m pytest specs -m "not slow" --circuits-json=build/specs.json

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Ratios of things timed side by side; needs an idle machine and some minutes.
benchmarks: setup
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[benchmark]"
	$(BIN)/python -m benchmarks

# Trains the reference models again from their recipes (CPU minutes each); checkpoints are replaced.
models: setup
	$(BIN)/python -m models.multitask llama

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv build .circuits_cache .pytest_cache
