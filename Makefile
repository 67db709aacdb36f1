# Each target sets up what it needs; the work is done in grader/.

PYTHON ?= python3
VENV := .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
READY := $(VENV)/.ready
LOCKED := --quiet --no-deps --require-hashes
# (The TPU compiler has its own lock: it is large, and wherever JAX finds it, JAX looks for TPUs.)
COMPILE := uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --custom-compile-command "make lock" --quiet
# (Four processes on two cores, because they spend a quarter of their time waiting; each takes up to 1 GB.)
SIDE_BY_SIDE := -n 4 --dist loadgroup --no-loadscope-reorder
NBVAL := --nbval --nbval-sanitize-with=solutions/sanitize.cfg --nbval-cell-timeout=120
LESSONS := $(wildcard solutions/*/*.md)
GRADER := $(shell find grader -name '*.py')

.DEFAULT_GOAL := help
.PHONY: help grade feedback report quick test notebooks slow truth lab course book coverage bench tpu lint lock clean

help:  ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | awk -F '\t' '{printf "  make %-9s %s\n", $$1, $$2}'

# (Status 1: someone should look at a submission, and the output says so. Make turns every other failure into 2: grading failed.)
grade: $(READY) .cache/course  ## Grade submitted/, or a demo class if it is empty (options: ARGS=--details)
	grader grade $(ARGS) || [ $$? = 1 ]

feedback: $(READY) .cache/course  ## Rewrite the feedback pages from the graded submissions
	grader feedback

report: $(READY)  ## Report on the graded class in one page, report.html (options: ARGS=--names)
	grader report $(ARGS)

quick: $(READY)  ## Run the core tests in a minute or two: no classroom, processes, or lessons
	pytest $(SIDE_BY_SIDE) $(addprefix --ignore=tests/,whole classroom processes lessons)

# (Compile bytecode now: the tests start many processes, and sandboxed ones can't write it.)
test: $(READY)  ## Run every test that isn't slow, plus today's part of the rotating tests and solution notebooks
	python -m compileall -q grader
	pytest $(SIDE_BY_SIDE) $(NBVAL) tests solutions

notebooks: $(READY)  ## Run all solution notebooks and compare their stored outputs
	pytest $(SIDE_BY_SIDE) $(NBVAL) solutions/*/*.ipynb

slow: $(READY)  ## Run the long tests that `make test` skips: twenty kills, look-alike attacks, an hour of fuzzing
	pytest -m slow
	FUZZ_TIMES=120 pytest --timeout=1200 tests/fuzz

truth: $(READY)  ## Judge every recorded answer, and show what students are told (half an hour; one lesson: ARGS=07_matmul)
	python tests/recorded_all.py $(ARGS)

lab: $(READY)  ## Open JupyterLab on work/, your own copy of the lessons, with 8 devices and nbgrader
	grader lab

course: .cache/course  ## Build course/ from solutions/

book: $(READY) .cache/course  ## Build the lessons as a website in dist/book/
	grader book

coverage: $(READY)  ## Show which checklist rows are taught, and where
	grader coverage

bench: $(READY) .cache/course  ## Compare with stock nbgrader on classes of 50, 200, and 1,000; resumes if stopped
	python bench/bench.py

tpu: $(READY)  ## Also install the TPU compiler (200 MB; Linux), which `grader.communication(…, on="v5e:16x16")` uses without a TPU
	uv pip install --python $(VENV) --target $(VENV)/tpu $(LOCKED) -r requirements-tpu.lock

lint: $(READY)  ## Check style, format, and types
	ruff check grader tests bench solutions
	ruff format --check grader tests bench solutions
	mypy

lock: $(READY)  ## Pin all packages at their newest versions in requirements.lock
	$(COMPILE) --no-emit-package libtpu --upgrade --output-file requirements.lock
	$(COMPILE) --constraint requirements.lock --no-header | awk '/^[^ ]/ { wanted = /^libtpu==/ } wanted' > requirements-tpu.lock

clean:  ## Remove generated files, but no submissions
	rm -rf $(VENV) .cache dist demo autograded feedback grades.csv gradebook.csv totals.csv report.html .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

.cache/course: $(READY) $(LESSONS) $(GRADER) nbgrader_config.py
	grader build
	@mkdir -p .cache && touch $@

# uv installs in seconds, pip in minutes, but only pip uses a mirror that this machine is configured for.
# (Compile all bytecode now: sandboxed processes can't write it.)
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	awk '/^[^ ]/ { wanted = /^uv==/ } wanted' requirements.lock | pip --disable-pip-version-check install $(LOCKED) -r /dev/stdin
	uv pip install --python $(VENV) --compile-bytecode $(LOCKED) -r requirements.lock || pip install $(LOCKED) -r requirements.lock
	uv pip install --python $(VENV) --quiet --no-deps --no-build-isolation --editable .
	@touch $@
