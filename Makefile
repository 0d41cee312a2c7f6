# Thin on purpose: scripts/setup installs what is missing, meson and ninja build, tests/run tests.

BUILD = build
ASAN = $(BUILD)-asan
FUZZ = $(BUILD)-fuzz
TESTS = CAISSON_BUILD=$(BUILD) tests/run

# ninja is parallel; two package managers at once are not a good idea.
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help deb run test test-all test-long build web asan fuzz setup setup-test install uninstall clean \
        dist lint test-unit test-asan test-fuzz test-integration test-compat test-sandbox test-vm test-debian bench soak

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

run: build ## install what is missing, build, and show what Caisson does
	@scripts/demo $(BUILD)/caisson

test: build asan ## what has to pass before a change lands: every part, in at most 15 minutes on two cores
	@$(TESTS)

test-all: build asan fuzz ## the same in full: both roads of each act, all machines and clients, fuzzing, the short benchmark
	@$(TESTS) --all

test-long: build fuzz ## fuzzing of 600 s a target, and the soak test
	@CAISSON_FUZZ_SECONDS=600 $(TESTS) --all fuzz
	@CAISSON_BUILD=$(BUILD) tests/soak/soak.py

build: setup $(BUILD)/build.ninja ## the programs, in build/
	@ninja -C $(BUILD)

web: setup ## the page alone, in web/dist, compared with web/HASHES (the daemon has its own copy)
	@node web/build.mjs
	@node web/build.mjs --check

asan: setup-test $(ASAN)/build.ninja ## the same with AddressSanitizer and UBSan, in build-asan/
	@ninja -C $(ASAN)

fuzz: setup-test $(FUZZ)/build.ninja ## the fuzz targets, in build-fuzz/
	@ninja -C $(FUZZ)

lint: build setup-test ## style, layers, static analysis
	@$(TESTS) lint

test-unit: build ## the unit tests
	@$(TESTS) unit

test-asan: asan ## the unit tests and the known inputs of every parser under the sanitizers
	@$(TESTS) asan corpus

test-fuzz: fuzz ## every parser for CAISSON_FUZZ_SECONDS (30) on hostile bytes
	@$(TESTS) --all fuzz

test-integration: build setup-test ## the programs as a user meets them
	@$(TESTS) integration

test-compat: build setup-test ## clients of other services, unmodified
	@$(TESTS) --all compat

test-sandbox: build setup-test ## every promise of the sandbox, attacked on both roads
	@$(TESTS) --all sandbox

test-vm: build setup-test ## other kernels and cgroup v2, in four virtual machines
	@$(TESTS) --all vm

test-debian: build setup-test ## packages in fresh systems of Debian 12 and 13, Ubuntu 24.04 and for arm64, the image in containers, Kubernetes' own API server, the next Pythons
	@tests/debian/packages
	@tests/debian/cross
	@tests/debian/containers
	@CAISSON_BUILD=$(BUILD) tests/debian/docker
	@tests/debian/apiserver
	@CAISSON_BUILD=$(BUILD) tests/debian/run

soak: build setup-test ## ten minutes of mixed load, and whether anything has grown (tests/soak)
	@CAISSON_BUILD=$(BUILD) tests/soak/soak.py

bench: build setup-test ## measure Caisson beside bare forks and its peers (bench/README.md)
	@CAISSON_BUILD=$(BUILD) bench/run
	@CAISSON_BUILD=$(BUILD) bench/hostile
	@[ -z "$$CAISSON_BENCH_ROOTFS" ] || CAISSON_BUILD=$(BUILD) bench/docker --image "$$CAISSON_BENCH_ROOTFS"

dist: setup ## a source tarball that builds without a network, in build/; Debian packages are made from it (debian/)
	@scripts/dist $(BUILD)/caisson-$$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build).tar.xz

deb: setup ## Debian packages, in build/deb (the build dependencies are those of debian/control)
	@scripts/deb $(BUILD)/deb

install: build ## install to the system (DESTDIR is honoured; docs/use/host.md says what and where)
	@meson install -C $(BUILD) --no-rebuild

uninstall: ## remove what make install put there, and no state of a daemon
	@scripts/uninstall $(BUILD)

clean: ## remove what was built
	@rm -rf $(BUILD) $(ASAN) $(FUZZ) web/dist

setup:
	@scripts/setup run

setup-test:
	@scripts/setup test

# Only the first time: from then on ninja itself notices when meson.build changes.
$(BUILD)/build.ninja: | setup
	@meson setup $(BUILD)

$(ASAN)/build.ninja: | setup-test
	@CC=clang meson setup $(ASAN) --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false \
		-Dfuzz=replay

# Fuzzing finds more when memory errors and undefined behaviour end the program.
$(FUZZ)/build.ninja: | setup-test
	@CC=clang meson setup $(FUZZ) --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false \
		-Dfuzz=search
