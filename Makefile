# `make help` explains the targets. Everything runs in .venv, which the first target creates.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
MODELS ?= examples/models
MODEL  ?= examples/models/bert.ts.onnx
# Two processes: more of them gain little where the tests are short, and small machines have two.
PYTEST_ARGS ?= -q -n 2

.DEFAULT_GOAL := help
.NOTPARALLEL:  # two pips in one .venv would trip over each other
.PHONY: help demo test test-long check lint types index conformance blame bench bench-growth bench-view \
  bench-context bench-looks bench-rewrite bench-startup bench-verify profile kernels clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  Variables: MODELS=DIR, MODEL=FILE, PYTHON=python3.12, and what a command is to get beside"
	@echo "  its own arguments: PYTEST_ARGS, CONFORMANCE_ARGS, FUZZ_ARGS, FLEET_ARGS, BLAME_ARGS, PROFILE_ARGS,"
	@echo "  BENCH_ARGS='--peers onnxslim --runs 9'"

demo: $(VENV)/.installed-test  ## Optimise examples/models at -O3, verified; results in build/demo
	@$(BIN)/python examples/demo.py

test: $(VENV)/.installed-test  ## Run the tests
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

test-long: $(VENV)/.installed-test  ## Run 100 histories of random edits; kill 200 runs; convert 2 GB
	@TIERED_LONG=100 $(BIN)/python -m pytest $(PYTEST_ARGS) tests/graph/test_edits.py \
	  tests/cli/test_large.py tests/numerics/precision/test_large.py

.PHONY: fleet bench-fleet
fleet: $(VENV)/.installed-test  ## Run 300 models as a batch, kill it 20 times: FLEET_ARGS='--models DIR'
	@$(BIN)/python -m tests.extensions.fleet.acceptance --models $(MODELS) $(FLEET_ARGS)

.PHONY: fleet-cluster
fleet-cluster: $(VENV)/.installed-test  ## Run a batch on Dask and S3, kill a worker and the scheduler (moto[server], s3fs)
	@$(BIN)/python -m tests.extensions.fleet.cluster_acceptance --models $(MODELS) $(FLEET_ARGS)

bench-fleet: $(VENV)/.installed-test  ## Measure a batch beside one process on variants of MODELS=DIR
	@$(BIN)/python -m benchmarks.fleet --models $(MODELS) $(BENCH_ARGS)

.PHONY: fuzz fuzz-passes fuzz-nested fuzz-rooms round-trips fuzz-compat at-rest
fuzz: $(VENV)/.installed-test  ## Spoil random models and optimise them, for FUZZ_ARGS='--minutes 30'
	@$(BIN)/python -m tests.conformance.fuzz_models $(FUZZ_ARGS)

fuzz-passes: $(VENV)/.installed-test  ## Judge random models for FUZZ_ARGS='--minutes 30 --seed 0'
	@$(BIN)/python -m tests.conformance.fuzz_passes $(FUZZ_ARGS)

fuzz-nested: $(VENV)/.installed-test  ## Judge rewrites that feed each other for FUZZ_ARGS='--minutes 30 --seed 0'
	@$(BIN)/python -m tests.conformance.fuzz_nested $(FUZZ_ARGS)

fuzz-rooms: $(VENV)/.installed-test  ## Judge random models in each room, or FUZZ_ARGS='legalize --minutes 30 --seed 0'
	@$(BIN)/python -m tests.conformance.rooms $(FUZZ_ARGS)

round-trips: $(VENV)/.installed-test  ## Take random models apart and together for FUZZ_ARGS='--minutes 30 --seed 0'
	@$(BIN)/python -m tests.conformance.round_trips $(FUZZ_ARGS)

fuzz-compat: $(VENV)/.installed-test  ## Judge each pass of the compat modules for FUZZ_ARGS='--minutes 30 --seed 0'
	@$(BIN)/python -m tests.conformance.compat_passes $(FUZZ_ARGS)

at-rest: $(VENV)/.installed-test  ## Optimise twice, for AT_REST_ARGS='--folder models': a second run changes nothing
	@$(BIN)/python -m tests.conformance.at_rest $(AT_REST_ARGS)

.PHONY: variants
variants: $(VENV)/.installed-test  ## Record what passes make of variants of their tests' models: VARIANTS='PASS ...'
	@$(BIN)/python -m tests.conformance.variants.recorded $(VARIANTS)

.PHONY: docs
docs: $(VENV)/.installed-docs  ## Build the documentation site in build/docs/html, without a warning
	@$(BIN)/python -m docs.site

check: lint types test  ## All that CI checks: ruff, mypy --strict, tests

lint: $(VENV)/.installed-dev  ## Run ruff, the formatter too
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev  ## Run mypy --strict
	@$(BIN)/mypy

index: $(VENV)/.installed-test  ## Write the index of passes anew: after a pass came, went or changed its declaration
	@$(BIN)/python -m tiered.passes.index.build

conformance: $(VENV)/.installed-test  ## Judge every model of MODELS=DIR and the ONNX backend cases at every level
	@$(BIN)/python -m tests.conformance --models $(MODELS) $(CONFORMANCE_ARGS)

.PHONY: mutants
mutants: $(VENV)/.installed-test  ## Change one token at a time; a test should notice: MUTANTS_ARGS='--count 200'
	@$(BIN)/python -m tests.mutants $(MUTANTS_ARGS)

.PHONY: precision
precision: $(VENV)/.installed-test  ## Judge fp16, bf16, mixed, int32 and float8 on every model of MODELS=DIR
	@$(BIN)/python -m tests.conformance.precision --models $(MODELS) $(PRECISION_ARGS)

.PHONY: digests digests-write
digests: $(VENV)/.installed-test  ## Compare what becomes of MODELS=DIR with the digests of DIGESTS_ARGS='--against FILE'
	@$(BIN)/python -m tests.conformance.digests --models $(MODELS) $(DIGESTS_ARGS)

digests-write: $(VENV)/.installed-test  ## Record the digests of MODELS=DIR anew: after results changed for a good reason
	@$(BIN)/python -m tests.conformance.digests --models $(MODELS) --write tests/conformance/digests.json

blame: $(VENV)/.installed-test  ## Hold passes that are wrong on purpose against MODELS=DIR: each is blamed
	@$(BIN)/python -m tests.extensions.debug.acceptance --models $(MODELS) $(BLAME_ARGS)

bench: $(VENV)/.installed-bench  ## Measure tiered and its peers side by side on MODELS=DIR; build/bench.*
	@mkdir -p build
	@$(BIN)/python -m benchmarks.peers --models $(MODELS) --json build/bench.json --svg build/bench.svg \
	  --html build/bench.html \
	  $(BENCH_ARGS)
	@$(BIN)/python -m benchmarks.calls --models $(MODELS)
	@$(BIN)/python -m benchmarks.processes --models $(MODELS)

.PHONY: bench-calls bench-processes
bench-calls: $(VENV)/.installed-bench  ## Compare first and second calls, and calls with code loaded
	@$(BIN)/python -m benchmarks.calls --models $(MODELS) $(BENCH_ARGS)

bench-processes: $(VENV)/.installed-bench  ## Compare the processes of each tool's command line
	@$(BIN)/python -m benchmarks.processes --models $(MODELS) $(BENCH_ARGS)

bench-growth: $(VENV)/.installed-test  ## Measure the time per node as a model gets longer and wider
	@$(BIN)/python -m benchmarks.growth $(BENCH_ARGS)

profile: $(VENV)/.installed-test  ## Show by pass where the time goes that MODEL=FILE takes
	@$(BIN)/python -m benchmarks.profile $(MODEL) $(PROFILE_ARGS)

.PHONY: bench-chains bench-gradients bench-orders bench-regions bench-repetition
bench-gradients: $(VENV)/.installed-test  ## Measure gradients of chains of 4,000, 16,000 and 64,000 nodes
	@$(BIN)/python -m benchmarks.gradients $(BENCH_ARGS)

bench-regions: $(VENV)/.installed-test  ## Measure what layouts take in a model of many small regions
	@$(BIN)/python -m benchmarks.regions $(BENCH_ARGS)

bench-repetition: $(VENV)/.installed-test  ## Compare a model of equal blocks with as many of one block
	@$(BIN)/python -m benchmarks.repetition $(BENCH_ARGS)

bench-chains: $(VENV)/.installed-test  ## Measure unrolled scans and their like before and after -O3
	@$(BIN)/python -m benchmarks.chains $(BENCH_ARGS)

bench-orders: $(VENV)/.installed-test  ## Measure operators in each order of their axes, for the layouts
	@$(BIN)/python -m benchmarks.orders $(BENCH_ARGS)

bench-latency: $(VENV)/.installed-bench  ## Measure how fast MODELS=DIR run before and after tiered and its peers
	@$(BIN)/python -m benchmarks.latency --models $(MODELS) $(BENCH_ARGS)

.PHONY: bench-tune
bench-tune: $(VENV)/.installed-bench  ## Tune MODELS=DIR, and measure the results beside -O3 and peers
	@$(BIN)/python -m benchmarks.tune --models $(MODELS) $(BENCH_ARGS)

bench-looks: $(VENV)/.installed-test  ## Count how often rules look at nodes again on MODELS=DIR, and without need
	@$(BIN)/python -m benchmarks.looks --models $(MODELS) $(BENCH_ARGS)

.PHONY: bench-idle
bench-idle: $(VENV)/.installed-test  ## Measure what the turn of a pass without work costs
	@$(BIN)/python -m benchmarks.idle $(BENCH_ARGS)

bench-startup: $(VENV)/.installed-test  ## Measure `tiered --help` beside the smallest program of its kind
	@$(BIN)/python -m benchmarks.startup $(BENCH_ARGS)

.PHONY: bench-pages
bench-pages: $(VENV)/.installed-test  ## Measure what the page of a run takes on MODELS=DIR
	@$(BIN)/python -m benchmarks.pages --models $(MODELS) $(BENCH_ARGS)

.PHONY: bench-memory
bench-memory: $(VENV)/.installed-test  ## Compare the planned peak with what onnxruntime allocates on MODELS=DIR
	@$(BIN)/python -m benchmarks.memory --models $(MODELS) $(BENCH_ARGS)

.PHONY: bench-heavy
bench-heavy: $(VENV)/.installed-test  ## Measure a model of 147 GB whose weights need not be read (sparse files)
	@$(BIN)/python -m benchmarks.heavy $(BENCH_ARGS)

.PHONY: bench-large
bench-large: $(VENV)/.installed-bench  ## Measure models of 4.4 GB and of 200 layers (BENCH_ARGS='--shape deep')
	@$(BIN)/python -m benchmarks.large $(BENCH_ARGS)

bench-view: $(VENV)/.installed-bench  ## Measure the view beside networkx, onnx-ir and a plain dict
	@$(BIN)/python -m benchmarks.view $(BENCH_ARGS)

kernels: $(VENV)/.installed-test  ## Write the operators of `onnxruntime_cpu` from the installed onnxruntime
	@$(BIN)/python -m tests.targets.kernels

bench-context: $(VENV)/.installed-bench  ## Measure what contexts and instruments cost on MODELS=DIR
	@$(BIN)/python -m benchmarks.context --models $(MODELS) $(BENCH_ARGS)

bench-verify: $(VENV)/.installed-bench  ## Measure what --verify=each costs on MODELS=DIR, in plain runs
	@$(BIN)/python -m benchmarks.verify --models $(MODELS) $(BENCH_ARGS)

.PHONY: bench-certify
bench-certify: $(VENV)/.installed-test  ## Measure what --certify proves and costs on MODELS=DIR
	@$(BIN)/python -m benchmarks.certify --models $(MODELS) $(BENCH_ARGS)

.PHONY: discover
discover: $(VENV)/.installed-test  ## Enumerate small graphs: which rules the pipeline lacks (takes up to an hour)
	@$(BIN)/python -m benchmarks.discover --state build/discovery --jobs 2 $(BENCH_ARGS)

.PHONY: prove prove-mutants
prove: $(VENV)/.installed-test  ## Certify each rewrite rule on generated instances; resumable
	@$(BIN)/python -m tests.certify.prove $(PROVE_ARGS)

prove-mutants: $(VENV)/.installed-test  ## Change passes token by token: no wrong rewrite may be certified
	@$(BIN)/python -m tests.certify.mutants $(PROVE_ARGS)

bench-rewrite: $(VENV)/.installed-bench  ## Measure matching beside onnxscript on MODELS=DIR, and long chains
	@$(BIN)/python -m benchmarks.rewrite --models $(MODELS) $(BENCH_ARGS)

.PHONY: dist
dist: $(VENV)/.installed-test  ## Build wheel and sdist in dist/, and check what an index would refuse
	@$(BIN)/python -m pip install --quiet build twine
	@$(BIN)/python -m build --quiet
	@$(BIN)/python -m twine check --strict dist/*

clean:  ## Remove .venv, build results and caches
	rm -rf $(VENV) build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp of an installed group of extras: `test`, `dev` or `bench`.
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	@echo "installing tiered[$*] into $(VENV) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[$*]'
	@$(BIN)/python -m compileall -q tiered  # pip does so, but not for an editable package
	@touch $@ $(if $(filter dev docs,$*),$(VENV)/.installed-test)  # which both include

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "tiered needs Python 3.11 or newer; try: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
