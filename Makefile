# Two commands matter: `make run` and `make test`. `make help` lists the rest.
.DEFAULT_GOAL := help
.PHONY: help run test test-deep test-all test-pythons test-compose lint format catalogues docs screenshots bench bench-profile chaos chaos-judge chaos-breakages lock clean style setup-run setup-dev

# Compiled files save seconds at each start of a process.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# Each worker has its own engines and browser, about 1.5 GB. 0 runs all tests in one process. Three keep two cores busy:
# the quick tests wait for Kafka and PostgreSQL a third of their time. The deep tests stop and measure processes.
WORKERS := $(or $(PYTEST_WORKERS),$(if $(ARGS),0,3))
DEEP_WORKERS := $(or $(PYTEST_WORKERS),$(if $(ARGS),0,2))
PYTEST := $(BIN)/python -m pytest --dist worksteal
DEEP := kills or stack or browser or plans or cluster or long

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: setup-run ## start everything on real embedded engines, until Ctrl-C (BROKERS=3, PORT_BASE=8000, STACK_DIR=.run)
	@($(MAKE) --no-print-directory .site &)
	@exec $(BIN)/python -m stack

# Like `make docs`, but a link that leads nowhere does not keep the stack from starting.
.site: $(shell find docs -mindepth 1) $(wildcard clients/*/README.md *.md) services/api/static/mark.svg requirements/run.lock | setup-run
	@-$(BIN)/python docs/site/build.py .site

test: $(if $(ARGS),setup-dev,style) ## lint, type-check and run the quick tests (ARGS=tests/api: only those, without lint)
ifdef ARGS
	$(PYTEST) -n $(WORKERS) -m "not ($(DEEP))" $(ARGS)
else
	@# Without a cache, mypy takes half a minute of one core. The tests leave that much idle.
	@{ $(BIN)/mypy >.venv/mypy.log 2>&1 || { cat .venv/mypy.log; false; }; } & types=$$!; \
	$(PYTEST) -n $(WORKERS) -m "not ($(DEEP))"; tests=$$?; \
	wait $$types || { cat .venv/mypy.log; exit 1; }; exit $$tests
endif

test-deep: setup-dev ## run the other tests: kills, whole stacks, all pages in a browser, query plans, three brokers (ONLY=kills)
	$(PYTEST) -n $(DEEP_WORKERS) -m "$(or $(ONLY),$(DEEP))" $(ARGS)

test-all: test ## run both
	@$(MAKE) --no-print-directory test-deep

test-pythons: setup-dev ## run the quick tests on each installed Python from 3.11 to 3.14
	bin/test-pythons -m "not ($(DEEP))" $(ARGS)

test-compose: setup-dev ## test the compose files on a real Docker daemon; skipped without one
	bin/test-compose

lint: style ## run ruff, import-linter and mypy
	$(BIN)/mypy

style: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache >.venv/lint-imports.log || { cat .venv/lint-imports.log; exit 1; }

format: setup-dev ## format the code and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

catalogues: setup-dev ## extract new texts of the pages into the translations, and compile them
	bin/catalogues

docs: setup-run ## build the documentation site in .site; make run serves it at /docs/en/ and /docs/ar/ of the API
	$(BIN)/python docs/site/build.py --strict .site

screenshots: setup-dev ## take the screenshots in docs/images again, on a new stack
	$(BIN)/python -m screenshots

bench: setup-dev ## run the benchmarks, print a table and write $STACK_DIR/bench.json (ONLY=webhooks,api)
	$(BIN)/python -m bench $(ONLY)

bench-profile: setup-dev ## write a flame graph of one measurement to $STACK_DIR/NAME.svg (NAME=webhooks)
	@mkdir -p "$${STACK_DIR:-.run}"
	$(BIN)/py-spy record --subprocesses --nonblocking --rate 200 --output "$${STACK_DIR:-.run}/$(NAME).svg" -- $(BIN)/python -m bench $(NAME)

chaos: setup-dev ## payments on a real stack under faults, and a verdict (DURATION=180, SEED=…, BROKERS=3, ARGS=--no-faults)
	@exec $(BIN)/python -m chaos $(if $(DURATION),--duration $(DURATION)) $(if $(SEED),--seed $(SEED)) \
		$(if $(BROKERS),--brokers $(BROKERS)) $(ARGS)

chaos-judge: setup-dev ## judge the history of a run of make chaos again (HISTORY=file)
	$(BIN)/python -m chaos.judge $(HISTORY)

chaos-breakages: setup-dev ## make chaos on copies that are broken on purpose: each must be caught (ARGS="early-retry --seed 7")
	@exec $(BIN)/python -m chaos.breakages $(ARGS)

lock: setup-dev ## resolve the dependencies of pyproject.toml again into requirements/
	bin/lock

clean: ## remove .venv, caches and the data of STACK_DIR (not while it runs)
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m stack clean; fi
	rm -rf .site .site-* .venv .venv-3.* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup-run:
	@sh bin/bootstrap run

setup-dev:
	@sh bin/bootstrap dev
