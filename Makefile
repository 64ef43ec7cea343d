# The one front door. Every target sets up what it needs; CI runs the same targets.
PYTHON ?= python3
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
# An environment belongs to one Python: another that is asked for, as in `make PYTHON=python3.13 test`, gets its own.
VENV := .venv$(if $(filter file,$(origin PYTHON)),,-$(VERSION))
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs-$(VERSION)
READY := $(VENV)/.ready-$(VERSION)
RUN := $(BIN)/python
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check
# Compiled files are kept whatever the machine says: without them every process of the suite compiles the package anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo serve test quick fuzz check docs format bench bench-cluster bench-delay bench-dense bench-age bench-http api soak bench-spans tempo cel bench-peers intents kill processes handoffs drain remote sim sim-defects pii mutate spec console test-console screenshots split fit-split conflicts lock clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(RUNS): requirements/run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Comity needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	@echo "Making $(VENV) with Python $(VERSION) ..."
	@test "$$($(RUN) -V 2>&1)" = "Python $(VERSION)" || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing the $$(grep -c == requirements/run.lock) packages that Comity runs with, about 15 s ..."
	@$(INSTALL) --no-deps --no-compile --require-hashes -r requirements/run.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(READY): $(RUNS) requirements/dev.lock
	@echo "Installing the developers' tools, $$(grep -c == requirements/dev.lock) packages in all, about a minute ..."
	@$(INSTALL) --no-deps --require-hashes -r requirements/dev.lock
	@touch $@

demo: $(RUNS) ## run the main job: a business case by four agents, under every rule
	$(BIN)/comity demo
	@echo "  make serve  # the same calls in the browser: open the link it prints"

serve: $(RUNS) ## serve the demo's agents and the console on loopback; open the link it prints
	@$(RUN) -c 'import starlette, uvicorn' 2>/dev/null || { echo "Installing the packages of the server, about 15 s ..."; \
		$(INSTALL) --no-deps --no-compile --require-hashes -r requirements/server.lock; }
	$(BIN)/comity serve

# In memory where there is one to write to: what a disk forgets is simulated, and `make kill` uses a real one.
test: export PYTEST_DEBUG_TEMPROOT := $(wildcard /dev/shm)
# Four processes also on two cores: some tests wait.
test: $(READY) ## run the test suite; PYTHON=python3.13 chooses another Python
	$(RUN) -m pytest --forks 4 -m "not types"

quick: export PYTEST_DEBUG_TEMPROOT := $(wildcard /dev/shm)
quick: $(READY) ## core, dialects and runtime alone, without property tests and worker processes: under a minute
	$(RUN) -m pytest --forks 4 -m "not hypothesis" \
		--ignore-glob="*_kill.py" --ignore-glob="*_workers.py" --ignore-glob="*_processes.py" tests/core tests/dialects tests/runtime

EXAMPLES ?= 1000
fuzz: $(READY) ## try EXAMPLES inputs at every property, where the suite tries 12
	COMITY_EXAMPLES=$(EXAMPLES) $(RUN) -m pytest --timeout 0 -n 2 --dist worksteal -m hypothesis

check: $(READY) ## formatting, lint, types of the code, its calls and the examples, layer rule, doc tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(RUN) scripts/check_layers.py
	$(RUN) -m pytest tests/docs tests/types

docs: $(READY) ## draw the pages that show the code
	$(RUN) scripts/draw_docs.py
	$(RUN) scripts/walk_call.py

format: $(READY) ## format the code and fix what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## what a governed call costs, against a bare queue hop in the same run
	$(RUN) bench/governed.py
	$(RUN) bench/isolation.py
	$(RUN) bench/footprint.py
	$(RUN) bench/handoffs.py
	$(RUN) bench/tracing.py

bench-cluster: $(READY) ## what a call to another node costs, and what a second process on one store brings
	$(RUN) bench/cluster.py

bench-delay: $(READY) ## how late others are while one request of a megabyte is hostile
	$(RUN) bench/loop_delay.py

bench-dense: $(READY) ## what a megabyte of the densest personal text costs, and 200 KB of ordinary text
	$(RUN) bench/dense.py

bench-age: $(READY) ## a store of a million calls, and a million calls under a retention: time, memory, disk
	$(RUN) bench/age.py

bench-http: $(READY) ## what a call costs over HTTP beside an echo, what idle streams cost, what hostile clients do to others
	$(RUN) bench/serving.py
	$(RUN) bench/serving.py --idle 1000
	$(RUN) bench/serving.py --hostile

API_EXAMPLES ?= 200
API_SEED ?= 1
api: $(READY) ## ask every operation of the API in ways its description allows and forbids: no 5xx, no undocumented status
	COMITY_API_EXAMPLES=$(API_EXAMPLES) COMITY_API_SEED=$(API_SEED) $(RUN) -m pytest --timeout 0 -s -p no:xdist tests/server/test_server_openapi.py

MINUTES ?= 10
soak: $(READY) ## honest users for MINUTES, with and without hostile ones: memory over time, p99 of the honest and the ratio
	$(RUN) bench/soak.py --minutes $(MINUTES)

bench-spans: $(READY) ## what the span store costs, from 10,000 to 1,000,000 spans
	$(RUN) bench/spans.py

# Tempo's own list of queries is not part of this repository: the folder that holds test_examples.yaml of its source.
export COMITY_TEMPO_DIR ?= ../shared/tempo
tempo: $(READY) ## how many of Tempo's own queries and recorded answers agree, and the protocol's queries as Tempo reads them
	$(RUN) -m pytest -p no:xdist tests/core/tracing/query/test_query_tempo.py tests/core/tracing/query/tempo_corpus.py \
		tests/core/tracing/query/test_query_rewrite.py

CEL_DIR ?= ../shared/cel
CEL_COUNT ?= 100000
cel: $(READY) ## how many of CEL's conformance cases agree, and CEL_COUNT random expressions; CEL_DIR names the folder with cases.json
	$(RUN) scripts/check_cel.py $(CEL_DIR)
	$(RUN) scripts/compare_cel.py $(CEL_COUNT)

INTENTS_DIR ?= ../shared/intents
intents: $(READY) ## accuracy, rejection, calibration and cost of the intent classifier; INTENTS_DIR names the folder with the sets
	$(RUN) scripts/check_intents.py $(INTENTS_DIR) $(INTENTS)

SPLIT ?= tests/core/orchestration/split/requests.yaml
split: $(READY) ## how many labelled requests are cut into their parts, in order; SPLIT names another file, SPLIT_ARGS=--verbose
	$(RUN) scripts/check_split.py $(SPLIT) $(SPLIT_ARGS)

fit-split: $(READY) ## learn again by which weights parts of a request are steps, after a change of its rules or of a labelled set
	$(RUN) scripts/fit_split.py $(wildcard tests/core/orchestration/split/*requests.yaml) --write

CONFLICTS ?= tests/core/orchestration/conflict/pairs.yaml
conflicts: $(READY) ## how many labelled pairs of values are judged right; CONFLICTS names another file, CONFLICTS_ARGS=--verbose
	$(RUN) scripts/check_conflicts.py $(CONFLICTS) $(CONFLICTS_ARGS)

bench-peers: $(READY) ## the same job in other frameworks, each in its own environment
	$(RUN) bench/peers.py

kill: $(READY) ## kill -9 a node 100 times, a run at every append, one of two that share a store, and cut the power 1,200 times: nothing acknowledged may be lost
	COMITY_RUN_KILLS=50 COMITY_RUN_MOVES=10 COMITY_RUN_POSITIONS=1 COMITY_CRASH_POINTS=1 $(RUN) -m pytest -s --timeout 0 \
		tests/runtime/workflow/test_run_kill.py tests/testing/sim/test_sim_workflow_crash_points.py
	COMITY_KILLS=100 COMITY_CUTS=1200 $(RUN) -m pytest --timeout 0 tests/engines/sqlite/test_kill.py tests/engines/sqlite/test_power_cut.py

processes: $(READY) ## two and four processes on one store, killed -9 300 times under load: nothing acknowledged is lost or done twice
	COMITY_PROCESS_KILLS=300 $(RUN) -m pytest --timeout 0 -s tests/engines/sqlite/test_processes.py

handoffs: $(READY) ## hand off 1,000 times to 8 receivers that are killed -9 at random: each completed once, nobody polls
	COMITY_HANDOFFS=1000 $(RUN) -m pytest --timeout 0 -s tests/runtime/handoff/test_handoff_kill.py

DRAINS ?= 10
drain: $(READY) ## end a real server DRAINS times by SIGTERM, under 64 clients and 20 streams: no call may be lost
	COMITY_DRAINS=$(DRAINS) $(RUN) -m pytest --timeout 0 -s -p no:xdist tests/server/test_server_drain.py

remote: $(READY) ## kill -9 the node that serves remote calls 50 times: no call is lost, none that ended runs again
	COMITY_REMOTE_KILLS=50 $(RUN) -m pytest --timeout 0 -s -p no:xdist tests/server/test_remote_kill.py

SEEDS ?= 1000
sim: $(READY) ## simulate SEEDS seeds of agents under every fault; what was never reached fails too
	cd tests/support && $(CURDIR)/$(BIN)/comity sim --app workloads.scenarios:CAMPAIGN --seeds $(SEEDS) --complete

sim-defects: $(READY) ## the table of planted defects: which invariant catches each, after how many seeds
	PYTHONPATH=tests/support $(RUN) tests/testing/sim/defects.py

pii: $(READY) ## precision and recall of personal data per type, on a labelled corpus; PII_ARGS=-v shows what was missed
	$(RUN) tests/core/redaction/pii_corpus.py $(PII_ARGS)

spec: $(READY) ## check the TLA+ specification with TLC; SPEC_ARGS=--large for the large configuration
	$(INSTALL) --require-hashes -r requirements/spec.lock
	$(RUN) scripts/check_spec.py $(SPEC_ARGS)

mutate: $(READY) ## plant a sample of small defects in the files that carry promises: which does no test notice? MUTATE_ARGS=--help
	$(INSTALL) --no-deps --require-hashes -r requirements/mutate.lock
	$(RUN) scripts/mutate.py $(MUTATE_ARGS)

console: ## rebuild the one vendored file of the console from npm and compare it byte by byte with the packaged one
	@command -v npm >/dev/null || { echo "make console needs npm (Debian: apt-get install npm)"; exit 1; }
	cd scripts/console && npm ci --silent --ignore-scripts && npm run --silent vendor
	cmp scripts/console/build/vendor.js src/comity/console/vendor.js

# A browser of the system's packages, driven by Playwright; the accessibility rules come from npm. CONSOLE_ARGS goes to pytest.
$(VENV)/.browses: $(READY) requirements/console.lock scripts/console/package-lock.json
	$(INSTALL) --no-deps --require-hashes -r requirements/console.lock
	@command -v npm >/dev/null || { echo "make test-console needs npm (Debian: apt-get install npm)"; exit 1; }
	cd scripts/console && npm ci --silent --ignore-scripts
	@touch $@

test-console: export PYTEST_DEBUG_TEMPROOT := $(wildcard /dev/shm)
test-console: $(VENV)/.browses ## drive the console in a real Chromium as a person would: views, roles, accessibility, hostile content
	chromium=$$($(RUN) scripts/find_chromium.py) && COMITY_CHROMIUM=$$chromium \
		$(RUN) -m pytest -p no:xdist -o python_files='browse_*.py' tests/console $(CONSOLE_ARGS)

screenshots: $(VENV)/.browses ## make the pictures of the console in docs/images, or with REVIEW=FOLDER of every view in every state
	chromium=$$($(RUN) scripts/find_chromium.py) && COMITY_CHROMIUM=$$chromium $(RUN) tests/console/screenshots.py $(REVIEW)

PIN = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate \
	--python-version 3.11
lock: $(READY) ## pin every dependency again
	$(INSTALL) uv
	$(PIN) --group build pyproject.toml --output-file requirements/run.lock
	$(PIN) --group dev --extra llm --extra server --constraint requirements/run.lock pyproject.toml --output-file requirements/dev.lock
	$(PIN) --group spec --output-file requirements/spec.lock
	$(PIN) --extra server --constraint requirements/dev.lock pyproject.toml --output-file requirements/server.lock
	$(PIN) --group console --constraint requirements/dev.lock --output-file requirements/console.lock
	$(PIN) --group mutate --constraint requirements/dev.lock --output-file requirements/mutate.lock

clean: ## remove everything that make made
	rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage business-case.md comity.db comity.db.* comity.db-*
	find src tests scripts bench examples -name __pycache__ -type d -exec rm -rf {} +
