# Thin on purpose: tools/setup installs what is missing, meson and ninja build, tests/run tests.

BUILD = build
ASAN = $(BUILD)-asan
FUZZ = $(BUILD)-fuzz
TESTS = CAISSON_BUILD=$(BUILD) tests/run

# ninja is parallel; two package managers at once are not a good idea.
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help run test build asan fuzz setup setup-test install clean \
        lint test-unit test-asan test-fuzz test-integration test-compat test-sandbox test-sandbox-warm test-vm bench soak

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

run: build ## install what is missing, build, and show what Caisson does
	@tools/demo $(BUILD)/caisson

test: build asan fuzz ## everything: lint, unit, sanitizers, fuzzing, integration, sandbox, virtual machine
	@$(TESTS)

build: setup $(BUILD)/build.ninja ## the programs, in build/
	@ninja -C $(BUILD)

asan: setup-test $(ASAN)/build.ninja ## the same with AddressSanitizer and UBSan, in build-asan/
	@ninja -C $(ASAN)

fuzz: setup-test $(FUZZ)/build.ninja ## the fuzz targets, in build-fuzz/
	@ninja -C $(FUZZ)

lint: build setup-test ## style, layers, static analysis
	@$(TESTS) lint

test-unit: build ## the unit tests
	@$(TESTS) unit

test-asan: asan ## the unit tests under the sanitizers
	@$(TESTS) asan

test-fuzz: fuzz ## every parser for CAISSON_FUZZ_SECONDS (5) on hostile bytes
	@$(TESTS) fuzz

test-integration: build setup-test ## the programs as a user meets them
	@$(TESTS) integration

test-compat: build setup-test ## clients of other services, unmodified
	@$(TESTS) compat

test-sandbox: build setup-test ## every promise of the sandbox, attacked
	@$(TESTS) sandbox

test-sandbox-warm: build setup-test ## the same, by way of a daemon and its interpreters that wait
	@$(TESTS) sandbox-warm

test-vm: build setup-test ## other kernels and cgroup v2, in a virtual machine
	@$(TESTS) vm

soak: build setup-test ## ten minutes of mixed load, and whether anything has grown (tests/soak)
	@CAISSON_BUILD=$(BUILD) tests/soak/soak.py

bench: build setup-test ## measure Caisson beside bare forks and its peers (bench/README.md)
	@CAISSON_BUILD=$(BUILD) bench/run

install: build ## install to the system (DESTDIR is honoured)
	@meson install -C $(BUILD)

clean: ## remove what was built
	@rm -rf $(BUILD) $(ASAN) $(FUZZ)

setup:
	@tools/setup run

setup-test:
	@tools/setup test

# Only the first time: from then on ninja itself notices when meson.build changes.
$(BUILD)/build.ninja: | setup
	@meson setup $(BUILD)

$(ASAN)/build.ninja: | setup-test
	@CC=clang meson setup $(ASAN) --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false

# Fuzzing finds more when memory errors and undefined behaviour end the program.
$(FUZZ)/build.ninja: | setup-test
	@CC=clang meson setup $(FUZZ) --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false \
		-Dfuzz=true
