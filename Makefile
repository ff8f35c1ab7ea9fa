PYTHON ?= python3
TEXT ?= All voices, one pass.
OUT ?= tutti.wav
ARGS ?=

help:  ## what can be done here
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

serve: .venv/.tutti  ## speech over HTTP, the model fetched first: make serve ARGS="--port 8880 --preset latency"
	.venv/bin/tutti serve $(ARGS)

speak: .venv/.tutti  ## say TEXT into OUT: make speak TEXT="Hello" OUT=hello.wav ARGS="--voice am_adam"
	.venv/bin/tutti speak "$$TEXT" -o "$$OUT" $(ARGS)

install: .venv/.tutti  ## tutti in .venv, without PyTorch

test: .venv/.dev  ## lint, types and the whole suite, with the real model
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/pytest $(ARGS)

test-clients: .venv/.dev  ## the code of docs/integrations with the real clients: make test-clients ARGS="--only livekit"
	.venv/bin/python -m scripts.test_clients $(ARGS)

fmt: .venv/.dev  ## format the code
	.venv/bin/ruff check --fix . ; .venv/bin/ruff format .

clean:  ## forget the virtual environment and all caches of tools
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/pip:
	$(PYTHON) -m venv .venv

.venv/.tutti: pyproject.toml | .venv/bin/pip
	.venv/bin/pip install --quiet --editable . && touch $@

.venv/.dev: pyproject.toml | .venv/bin/pip
	.venv/bin/pip install --quiet --editable ".[dev]" && touch $@ .venv/.tutti

# As it was typed: "$5" is money here, not a variable.
override export TEXT := $(value TEXT)
export OUT
.PHONY: help serve speak install test test-clients fmt clean
