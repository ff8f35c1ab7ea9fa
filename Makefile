PYTHON ?= python3
TEXT ?= All voices, one pass.
OUT ?= tutti.wav
ARGS ?=
CONSTRAINTS = packaging/constraints.txt
PAGE = tutti/server/page/index.html
PURE = not process and not server and not browser and not weights and not network and not slow and not cluster
# One file is one unit of work; without the reordering, the long files of few tests do not come last.
PYTEST = .venv/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder
# Two processes on two cores: threads of NumPy and PyTorch would only compete with each other.
check test: export OMP_NUM_THREADS = 1
check test: export OPENBLAS_NUM_THREADS = 1
# Without stored bytecode pytest rewrites every test file anew: a third of the time of its collection.
unexport PYTHONDONTWRITEBYTECODE

help:  ## list these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

serve: .venv/.tutti page-if-possible  ## start the server; downloads the model first: make serve ARGS="--port 8880 --preset latency"
	.venv/bin/tutti serve $(ARGS)

speak: .venv/.tutti  ## speak TEXT into the file OUT: make speak TEXT="Hello" OUT=hello.wav ARGS="--voice am_adam"
	.venv/bin/tutti speak "$$TEXT" -o "$$OUT" $(ARGS)

install: .venv/.tutti  ## install tutti in .venv, without PyTorch

check: .venv/.dev lint  ## lint, type-check and run the pure tests: under a minute
	$(PYTEST) -p no:schemathesis --hypothesis-profile check -m "$(PURE)" $(ARGS)

test: .venv/.dev page-if-possible lint  ## lint, type-check and run all tests, with the real model: about 15 minutes
	$(PYTEST) $(ARGS)

lint: .venv/.dev
	.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy

test-clients: .venv/.dev  ## run the code of docs/integrations with the real clients: make test-clients ARGS="--only livekit"
	.venv/bin/python -m scripts.test_clients $(ARGS)

test-cluster: .venv-ray/.dev  ## run the tests that start Ray, in a virtual environment of its own: under 5 minutes
	.venv-ray/bin/pytest -m cluster $(ARGS) tests/cluster

light: .venv/.dev  ## train light for a checkpoint of others, on a CUDA device with 80 GB: make light CHECKPOINT=/path/folder
	.venv/bin/python -m scripts.train_light "$(CHECKPOINT)" $(ARGS)

page: $(PAGE)  ## build the web page from web/ into the package (needs npm)

dist: .venv/.dev page  ## build wheel and sdist, with the page inside, and the tested versions into dist/ (needs npm)
	rm -rf dist && .venv/bin/python -m build --no-isolation --outdir dist .
	.venv/bin/python -m build --no-isolation --wheel --outdir dist packaging/ray
	cp $(CONSTRAINTS) dist

pictures: .venv/.dev page  ## take the screenshots of the page, with the real model (needs Chromium)
	.venv/bin/python -m scripts.pictures $(ARGS)

audit: .venv/.dev  ## list packages and licences, write build/sbom.json, look for known vulnerabilities
	.venv/bin/python -m scripts.audit

fmt: .venv/.dev  ## format the code
	.venv/bin/ruff check --fix . ; .venv/bin/ruff format .

clean:  ## delete the virtual environment, caches, dist and the built page
	rm -rf .venv .venv-ray dist .pytest_cache .mypy_cache .ruff_cache .hypothesis web/node_modules $(dir $(PAGE))

.venv/bin/pip:
	$(PYTHON) -m venv .venv

.venv/.tutti: pyproject.toml $(CONSTRAINTS) | .venv/bin/pip
	.venv/bin/pip install --quiet --constraint $(CONSTRAINTS) --editable . && touch $@

.venv/.dev: pyproject.toml packaging/ray/pyproject.toml $(CONSTRAINTS) | .venv/bin/pip
	.venv/bin/pip install --quiet --constraint $(CONSTRAINTS) --editable ".[dev]"
	.venv/bin/python -m pip install --quiet --no-deps --editable packaging/ray && touch $@ .venv/.tutti

# Apart from .venv: Ray needs older versions of some packages.
.venv-ray/.dev: pyproject.toml packaging/ray/pyproject.toml
	$(PYTHON) -m venv .venv-ray && .venv-ray/bin/pip install --quiet --editable . --editable packaging/ray \
	  "pytest>=8.4,<10" "pytest-timeout>=2.3,<3" "hypothesis>=6.120,<7" "psutil>=6,<8" "pyyaml>=6,<7" && touch $@

$(PAGE): $(shell find web/src web/public -type f) web/index.html web/docs.html web/vite.config.ts web/tsconfig.json web/node_modules/.tutti
	cd web && npm run --silent build

# A mirror may lack a package of the lock file; the versions in package.json are exact, too. Images use `npm ci` alone.
web/node_modules/.tutti: web/package.json web/package-lock.json
	cd web && { npm ci --silent 2>/dev/null || npm install --no-package-lock --silent; } && touch node_modules/.tutti

# The server also works without its page.
page-if-possible:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory page || echo "could not build the page; continuing without it" >&2; \
	else echo "npm is not installed; continuing without the page" >&2; fi

# Taken literally: "$5" is money here, not a variable.
override export TEXT := $(value TEXT)
export OUT
.PHONY: help serve speak install check test lint test-clients test-cluster light page page-if-possible dist pictures audit fmt clean
