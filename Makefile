# Everything runs in .venv, which every target makes when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin

PAPERS := consistency_specificity neuron_circuits gradient_causal

.PHONY: specs papers mutation test test-quick lint setup clean models benchmarks calibrate docs

# The quick tier of the ready specs, on the shipped reference models.
specs: setup
	$(BIN)/python -m pytest specs -m "not slow" --circuits-json=build/specs.json

# All of the three papers' specs, measured again, and their pages in docs/results.
papers: setup
	for paper in $(PAPERS); do \
	  $(BIN)/python -m pytest specs/$$paper -n 2 --circuits-no-cache --circuits-json=build/$$paper.json || test $$? -eq 1 || exit 1; \
	done
	$(BIN)/python -m docs.results $(foreach paper,$(PAPERS),$(paper)=build/$(paper).json)

# Which damages of the shipped Llama the quick tiers of the ready specs notice, and the page about it; some ten minutes.
mutation: setup
	$(BIN)/python -m pytest specs/core.circuits.yaml specs/all_prompts.circuits.yaml specs/consistency_specificity specs/neuron_circuits \
	  -m "not slow" -k "candidate or (llama and not 8layers and not olmo2)" --circuits-mutate --circuits-json=build/mutation.json
	$(BIN)/python -m docs.results mutation=build/mutation.json

# The whole suite: some ten minutes on two idle cores.
test: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile

# All of it but the tests marked `extensive`: at most three minutes on two idle cores.
test-quick: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not extensive"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Ratios of things timed side by side; needs an idle machine and some minutes.
benchmarks: setup
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[benchmark]"
	$(BIN)/python -m benchmarks

# Trains the reference models again from their recipes (CPU minutes each); checkpoints are replaced.
models: setup
	for name in llama llama-8layers qwen3 gemma2 olmo2; do $(BIN)/python -m models.multitask $$name || exit 1; done
	$(BIN)/python -m models.sequence
	$(BIN)/python -m models.damaged fine-tuned
	$(BIN)/python -m models.planted models/planted-circuits

# How often verdicts are wrong, on simulated populations where the truth is known; writes a page.
calibrate: setup
	$(BIN)/python -m benchmarks.calibration --page docs/explanation/calibration.md

# Pages that are made from the code, from stored reports, and by running their commands.
docs: setup
	$(BIN)/python -m docs.catalogue
	$(BIN)/python -m docs.consoles
	$(BIN)/python -m docs.results

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv build .circuits_cache .pytest_cache
