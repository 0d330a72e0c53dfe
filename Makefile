# make test         everything that can fail, on real servers (installs them as root)
# make lint         gofmt, vet, staticcheck, golangci-lint, govulncheck
# make bench        what oncegate costs, as a table: a few minutes on an idle machine
# make storm        a million duplicates of one event: some minutes
# make model        the claim protocol's model with two mishaps: twenty minutes, 8 GB of memory
# make faults       an hour of histories in which things break: FAULTS_FOR=10m for less
# make rollouts     pods come and go with a real pod's times, ten times: some minutes
# make apiserver    deploy/k8s against a Kubernetes API server, which it builds first: a quarter of an hour, then seconds
# make bench-scale  what ten million claims cost in each store: two hours, and some 30 GB of disk and 8 GB of memory
# make build        bin/oncegate
# make dist         what is released, into dist: binaries, Debian packages, SBOMs, checksums

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: apiserver bench bench-scale build dist faults rollouts storm test test-servers test-unit test-nested lint model clean

GO ?= go
TOOLS := bin/tools

# Modules of their own, so that what only tests need stays out of go.mod.
NESTED := $(sort $(patsubst ./%/go.mod,%,$(filter-out ./tools/go.mod,$(shell find . -mindepth 2 -name go.mod -not -path './.git/*'))))

# The race detector needs a C compiler; without one the tests run all the same.
CC_FOUND := $(shell command -v $$($(GO) env CC) 2>/dev/null)
RACE := $(if $(CC_FOUND),-race)

build:
	$(GO) build -trimpath -o bin/oncegate ./cmd/oncegate

test: test-servers test-unit test-nested

test-servers:
	@scripts/test-servers

test-unit:
	@$(if $(RACE),true,echo "no C compiler: tests run without the race detector")
	$(GO) test $(RACE) -timeout 15m $$($(GO) list ./... | grep -v '/bench$$')
	$(GO) test -timeout 5m ./bench

# Never from the cache: they run a binary that they build. In parallel beyond the
# cores, since most of them wait for leases and limits to pass. What needs
# Kubernetes' own programs is left to `make apiserver`.
test-nested:
	for dir in $(filter-out e2e/apiserver,$(NESTED)); do (cd $$dir && echo "$$dir:" && $(GO) test -count=1 -parallel 8 -timeout 20m ./...) || exit; done

bench: test-servers
	@mkdir -p bin
	@$(GO) test -count=1 -timeout 60m -run '^TestCompare$$' ./bench -bench.rounds=5 -bench.each=2s -bench.out=$(CURDIR)/bin/bench.md
	@cat bin/bench.md

SCALE := 10000000
bench-scale: test-servers
	@mkdir -p bin
	@$(GO) test -count=1 -timeout 24h -run '^TestScale$$' ./bench -bench.scale=$(SCALE) -bench.scale.sample=3000 -bench.scale.limit=2m -bench.scale.out=$(CURDIR)/bin/scale.md
	@cat bin/scale.md

# The short form, of 200 000, is among the other tests.
STORM := 1000000
storm:
	$(GO) test -count=1 -v -timeout 1h -run '^TestStorm$$' ./bench -bench.storm=$(STORM)

# The short form is among the other tests.
model: test-servers
	$(GO) test -count=1 -v -timeout 3h ./docs/model -whole

# Each time with other seeds; a failure says how to run its seed alone.
FAULTS_FOR ?= 1h
FAULTS_FIRST ?= $(shell date +%s)

faults: test-servers
	@mkdir -p bin
	@cd e2e && $(GO) test -count=1 -timeout 0 -parallel 4 ./faults -run '^TestHistories$$' \
		-for $(FAULTS_FOR) -first $(FAULTS_FIRST) -events 150 -report $(CURDIR)/bin/faults.md
	@cat bin/faults.md

# The times that docs/kubernetes.md speaks of, and requests of 3 s. One kind of
# sidecar after the other.
rollouts:
	cd e2e && $(GO) test -count=1 -timeout 30m -parallel 1 -v -run '^TestPodRollout$$' . -pod.real -pod.rollouts=10 -pod.rate=100

KUBERNETES := bin/kubernetes

apiserver: $(KUBERNETES)/.built
	cd e2e/apiserver && $(GO) test -count=1 -timeout 20m . -programs=$(CURDIR)/$(KUBERNETES)

# Pinned by a module file of their own, since Kubernetes' modules and oncegate's
# choose other versions. PodMonitor's definition is a file in the operator's module.
$(KUBERNETES)/.built: e2e/apiserver/kubernetes.mod e2e/apiserver/kubernetes.sum
	cd e2e/apiserver && $(GO) mod download -modfile=kubernetes.mod github.com/prometheus-operator/prometheus-operator
	CGO_ENABLED=0 $(GO) build -C e2e/apiserver -modfile=kubernetes.mod -trimpath -o $(CURDIR)/$(KUBERNETES)/ \
		go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kubectl
	@touch $@

# All of them, whatever the first ones find.
lint: $(TOOLS)/.built
	@failed=0; \
	echo gofmt; \
	unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; failed=1; fi; \
	for dir in . $(NESTED); do \
		echo "$$dir: vet, staticcheck, golangci-lint"; \
		cd $(CURDIR)/$$dir; \
		$(GO) vet ./... || failed=1; \
		$(CURDIR)/$(TOOLS)/staticcheck ./... || failed=1; \
		$(CURDIR)/$(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./... || failed=1; \
	done; \
	cd $(CURDIR); \
	scripts/vulnerabilities $(TOOLS)/govulncheck . $(NESTED) || failed=1; \
	exit $$failed

# The linters are pinned in tools/go.mod and built from there.
$(TOOLS)/.built: tools/go.mod tools/go.sum
	$(GO) build -C tools -o ../$(TOOLS)/ tool
	@touch $@

dist: $(TOOLS)/.sbom
	@scripts/dist

# What writes SBOMs has a module file of its own, so that it and the linters
# don't choose each other's versions.
$(TOOLS)/.sbom: tools/sbom.mod tools/sbom.sum
	$(GO) build -C tools -modfile=sbom.mod -o ../$(TOOLS)/ tool
	@touch $@

clean:
	rm -rf bin dist
