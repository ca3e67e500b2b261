# Every command a person needs for this repository. "make" lists them.

GOLANGCI_VERSION := v2.15.0
# A count, not a time: before Go 1.27 a clean run now and then fails at its
# deadline (golang/go#75804).
FUZZTIME ?= 100000x

# Tests of processes and servers wait more than they compute.
PARALLEL := -parallel 6

GOLANGCI := bin/golangci-lint-$(GOLANGCI_VERSION)
MODULES = $(shell go list -m -f '{{.Dir}}/...')

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

.PHONY: help test race lint fmt fuzz long services

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Never from the cache of tests: some build the product by themselves, and Go does
# not know what such a test depends on.
test: services ## Run every test of every module
	@go test $(PARALLEL) -timeout 30m -count=1 -json work | go run ./internal/testreport

# A package at a time, and without what assert.LeaveToPlainRun and the integration
# tests' held leave out.
race: services ## Run them under the race detector, without what it cannot see (needs a C compiler)
	@.ci/services gcc
	@go test -race -p 1 $(PARALLEL) -timeout 30m -count=1 -json work | go run ./internal/testreport

lint: $(GOLANGCI) ## Vet and lint every module
	@go vet work
	@$(GOLANGCI) run $(MODULES)

fmt: $(GOLANGCI) ## Format every Go file
	@$(GOLANGCI) fmt

fuzz: ## Fuzz each target for FUZZTIME (100000x, which takes some seconds)
	@.ci/fuzz $(FUZZTIME)

long: services ## Run the long proofs: big storms, then some minutes on each fuzz target
	@SEMEL_LONG=1 go test -timeout 150m -count=1 -json work | go run ./internal/testreport
	@.ci/fuzz 3000000x

services: ## Install what the tests need beside Go: a browser, curl, Node, database servers (root on Debian)
	@.ci/services chromium curl nodejs postgresql pgbouncer mariadb redis

$(GOLANGCI):
	@echo "building golangci-lint $(GOLANGCI_VERSION), once"
	@GOWORK=off GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv bin/golangci-lint $@
