# The commands of this repository. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help run check test lint bench demo lab image image-debian image-operator fuzz soak docs clean

# Options for the program that `run` and `bench` start: make run ARGS="--listen 0.0.0.0:11211"
ARGS ?=

# Nodes of the cluster that `lab` starts.
NODES ?= 2

# The example that `demo` shows.
EXAMPLE ?= node-local-memcached

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build and start the proxy: a cache of its own, memcached on 127.0.0.1:11211 and Redis on 127.0.0.1:6379
	@[ -x target/quick/proxima ] || echo "run: building the program, which takes up to five minutes the first time, half of them for its last crate; then it starts"
	@sh scripts/build.sh --profile quick
	@exec target/quick/proxima run $(ARGS)

test: ## install what the tests need, then run all tests (TEST_JOBS end-to-end tests at a time)
	@sh scripts/test.sh

check: ## before every commit: lint, unit and engine tests; under two minutes after the first build
	@sh scripts/check.sh

lint: ## formatting, clippy, rustdoc, fuzz targets, ruff, shellcheck, spelling, and what the dependencies may be
	@sh scripts/lint.sh

bench: ## measure side by side with the proxies that are installed, into bench/results
	@sh scripts/prepare.sh
	@sh scripts/build.sh --release
	@cargo build --release --locked -p proxima-bench
	@PATH="$$PATH:$(CURDIR)/target/servers/mysqlrouter97/root/usr/bin" target/release/proxima-bench compare $(ARGS)
	@bash bench/reload.sh

demo: ## three nodes on this machine: local reads, writes to all, a fourth that joins; with EXAMPLE=fleet as a fleet, with EXAMPLE=auto-eject-pool beside twemproxy, with EXAMPLE=galera-causal beside HAProxy, with EXAMPLE=galera-smart-update in Kubernetes
	@bash examples/$(EXAMPLE)/demo.sh

lab: ## a shell with kubectl and helm beside a Kubernetes cluster of NODES (2) nodes on this machine, which ends with it
	@sh scripts/prepare.sh
	@sh scripts/control-plane.sh
	@sh scripts/helm.sh
	@[ -n "$$PROXIMA_BIN" ] || sh scripts/build.sh --profile quick
	@cd tests && NODES="$(NODES)" ../.venv/bin/python -m harness.lab

image: ## write a container image into target/image, for docker load and all that reads OCI's form
	@sh scripts/image.sh

image-debian: ## the same beside bash, coreutils, gawk and host from Debian, for manifests with scripts around an mcrouter
	@sh scripts/image.sh --debian

image-operator: ## the image of the operator, for this machine or for GOARCH
	@sh scripts/image.sh --operator

fuzz: ## fuzz the codecs and the readers of configurations, FUZZ_SECONDS (60) for each target
	@sh scripts/fuzz.sh

soak: ## the long runs: SOAK_ROUNDS (10) of the end-to-end tests, all of the failure matrix, the fleet's largest scopes, 30 minutes of each fuzz target
	@sh scripts/prepare.sh soak
	@sh scripts/soak.sh

docs: ## write docs/options.md, docs/routes.md and the JSON Schema anew
	@sh scripts/docs.sh

clean: ## remove what was built and installed here
	@rm -rf target wire/fuzz/target proxy/fuzz/target .venv .cache .pytest_cache
