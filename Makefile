# The table of contents. Each target sets up what it needs; the work is done in grader/.

PYTHON ?= python3
VENV := .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
READY := $(VENV)/.ready
LOCKED := --quiet --no-deps --require-hashes
# (The TPU's compiler is in a lock of its own: it is large, and JAX would look for TPUs wherever it finds it.)
COMPILE := uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --custom-compile-command "make lock" --quiet
# (Four processes for two cores, for a quarter of what they do is to wait; each takes up to 1 GB.)
SIDE_BY_SIDE := -n 4 --dist loadgroup --no-loadscope-reorder
NBVAL := --nbval --nbval-sanitize-with=solutions/sanitize.cfg --nbval-cell-timeout=120
LESSONS := $(wildcard solutions/*/*.md)
GRADER := $(shell find grader -name '*.py')

.DEFAULT_GOAL := help
.PHONY: help grade feedback report quick test notebooks slow truth lab course book coverage bench tpu lint lock clean

help:  ## Show what each target is for
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | awk -F '\t' '{printf "  make %-9s %s\n", $$1, $$2}'

# (1: somebody should look at a hand-in, and is told so. Whatever fails here is 2, which means that it could not be done.)
grade: $(READY) .cache/course  ## Grade submitted/ (or a demo class); options in ARGS, such as ARGS=--details
	grader grade $(ARGS) || [ $$? = 1 ]

feedback: $(READY) .cache/course  ## Write the feedback pages anew, from what is graded
	grader feedback

report: $(READY)  ## Write what came out of grading as one page, report.html; options in ARGS, such as ARGS=--names
	grader report $(ARGS)

quick: $(READY)  ## Run the core's tests in a minute or two: no classroom, no processes, no lessons
	pytest $(SIDE_BY_SIDE) $(addprefix --ignore=tests/,whole classroom processes lessons)

# (Bytecode at once: many processes are started, and those behind the walls cannot write any.)
test: $(READY)  ## Run every test that is not slow, and each day another part of what takes turns, and of the solution notebooks
	python -m compileall -q grader
	pytest $(SIDE_BY_SIDE) $(NBVAL) tests solutions

notebooks: $(READY)  ## Run all solution notebooks against their stored outputs
	pytest $(SIDE_BY_SIDE) $(NBVAL) solutions/*/*.ipynb

slow: $(READY)  ## Run the long tests that `make test` leaves out: twenty kills, look-alike attacks, an hour of fuzzing
	pytest -m slow
	FUZZ_TIMES=120 pytest --timeout=1200 tests/fuzz

truth: $(READY)  ## Show what answers hear that were written without a look at the grader: half an hour
	python tests/truth.py

lab: $(READY)  ## Open JupyterLab on work/, your own copy of the lessons, with 8 devices and nbgrader ready
	grader lab

course: .cache/course  ## Build course/ from solutions/

book: $(READY) .cache/course  ## Make a website of the lessons in dist/book/
	grader book

coverage: $(READY)  ## Show which rows of the checklist are taught, and where
	grader coverage

bench: $(READY) .cache/course  ## Compare with stock nbgrader: classes of 50, 200 and 1,000; what is measured is kept, so it may be stopped
	python bench/bench.py

tpu: $(READY)  ## Install the TPU's compiler too (200 MB; Linux): `grader.communication(…, on="v5e:16x16")` needs no TPU
	uv pip install --python $(VENV) --target $(VENV)/tpu $(LOCKED) -r requirements-tpu.lock

lint: $(READY)  ## Check style, format and types
	ruff check grader tests bench solutions
	ruff format --check grader tests bench solutions
	mypy

lock: $(READY)  ## Pin all packages anew in requirements.lock
	$(COMPILE) --no-emit-package libtpu --upgrade --output-file requirements.lock
	$(COMPILE) --constraint requirements.lock --no-header | awk '/^[^ ]/ { wanted = /^libtpu==/ } wanted' > requirements-tpu.lock

clean:  ## Remove what was made here, but not what was handed in
	rm -rf $(VENV) .cache dist autograded feedback grades.csv gradebook.csv totals.csv report.html .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

.cache/course: $(READY) $(LESSONS) $(GRADER) nbgrader_config.py
	grader build
	@mkdir -p .cache && touch $@

# uv installs in seconds what takes pip minutes; but only pip knows of a mirror that this machine is told to use.
# (Bytecode at once, for all: behind the walls none can be written.)
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	awk '/^[^ ]/ { wanted = /^uv==/ } wanted' requirements.lock | pip --disable-pip-version-check install $(LOCKED) -r /dev/stdin
	uv pip install --python $(VENV) --compile-bytecode $(LOCKED) -r requirements.lock || pip install $(LOCKED) -r requirements.lock
	uv pip install --python $(VENV) --quiet --no-deps --no-build-isolation --editable .
	@touch $@
