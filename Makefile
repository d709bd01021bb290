# The only list of verbs: `make help`. Continuous integration calls them through .ci/run.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: setup install web npm demo test check test-all test-wasm lint bench bench-peers bench-against endurance wild docs wheel wheels reproduce sbom audit clean help

PYTHON ?= python3
CARGO ?= cargo
VENV := .venv
BIN := $(VENV)/bin
LOCK := python/requirements.lock
DOCS := target/docs-venv
DOCS_LOCK := python/requirements-docs.lock
BENCH := target/bench
PEERS := target/peers
PEERS_PYTHON ?= $(PYTHON)
PEERS_ONLY ?=
BEFORE ?=
ENDURANCE := docs/reliability
ONLY ?=
SCALE ?= 1
WHEELS := target/wheels-venv
WHEELS_LOCK := python/requirements-wheels.lock
AUDIT := target/audit-venv
AUDIT_LOCK := python/requirements-audit.lock

# The networks that are measured over emulated networks too.
SHAPED := mnist_a,mnist_b,mnist_c,mnist_d,cifar10_minionn,resnet20

# The same of mode tabula, each predicted once: material is hundreds of megabytes.
LOOKED_UP := mnist_d,lenet,cifar10_minionn,resnet32

# Every file that the native module is built from, and the folders, whose times change when a file is removed.
NATIVE_SOURCES := $(shell find crates \( -type d -o -name '*.rs' -o -name '*.toml' -o -name '*.json' \) -print) \
    Cargo.toml Cargo.lock pyproject.toml rust-toolchain.toml

PYTHON_FOLDERS := $(wildcard python bench models tools examples deploy)

# All default members at once, the native module, too, which has no tests of its own: so all are built with the same features.
CRATES := --locked --features lanner-py/extension-module
CARGO_TEST := $(CARGO) test $(CRATES) --tests
CARGO_DOCTEST := $(CARGO) test $(CRATES) --doc
EXAMPLE := $(CARGO) run --release --locked --quiet --example
PYTEST := $(BIN)/python -m pytest --quiet

# A wheel of which every byte follows from the sources and the tools' versions: no date, and no path of this machine.
# Registry and checkout are named /cargo and /lanner in what panics and assertions say of their places.
SBOM := target/sbom/lanner.cdx.json
CARGO_FOLDER := $(or $(CARGO_HOME),$(HOME)/.cargo)
REPRODUCIBLE = SOURCE_DATE_EPOCH=315532800 CARGO_INCREMENTAL=0 \
    CARGO_ENCODED_RUSTFLAGS="$$(printf -- '--remap-path-prefix=%s=/lanner\037--remap-path-prefix=%s=/cargo' '$(CURDIR)' '$(CARGO_FOLDER)')" \
    CFLAGS="-ffile-prefix-map=$(CURDIR)=/lanner -ffile-prefix-map=$(CARGO_FOLDER)=/cargo"
BUILD_WHEEL = $(BIN)/maturin build --release --locked --interpreter $(BIN)/python --sbom-include $(SBOM)

# Wheels for whatever machine: Zig, a package of Python's, is their compiler of C and linker, and knows which symbols an older glibc has.
GLIBC := manylinux_2_28
LINUX_TARGETS := x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
MAC_TARGET := aarch64-apple-darwin
WINDOWS_TARGET := x86_64-pc-windows-gnu
WINDOWS_COMPILER := x86_64-w64-mingw32-gcc
BUILD_WHEELS = PATH="$(abspath $(WHEELS)/bin):$$PATH" $(WHEELS)/bin/maturin build --release --locked --sbom-include $(SBOM) \
    --target-dir target/wheels --out dist

setup: $(VENV)/.installed ## create .venv and install the locked requirements and this package into it, as tests want it

$(VENV)/.requirements: $(LOCK)
	@PYTHON="$(PYTHON)" CARGO="$(CARGO)" tools/preflight
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(LOCK)
	@touch $@

# The environment imports python/src as it is; only a change of Rust needs the module again. It is one of two builds: that of the tests' profile
# takes two minutes, that of a wheel is up to twice as fast. Whichever was made last is what .venv has.
INSTALL = PYTHON="$(PYTHON)" CARGO="$(CARGO)" tools/preflight && PATH="$(abspath $(BIN)):$$PATH" MATURIN_PEP517_ARGS="--locked $(1)" \
    $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .

$(VENV)/.installed: $(VENV)/.requirements $(NATIVE_SOURCES)
	@$(call INSTALL,--profile dev)
	@rm -f $(VENV)/.optimised
	@touch $@

install: $(VENV)/.optimised ## as setup, with the module as a wheel has it: takes longer to build and less to run
$(VENV)/.optimised: $(VENV)/.requirements $(NATIVE_SOURCES)
	@$(call INSTALL,--profile release)
	@rm -f $(VENV)/.installed
	@touch $@

# The client for browsers and Node, with WASI's clock and randomness. TLS has parts in C, without a library of C.
WEB_TARGET := wasm32-wasip1
WEB := python/src/lanner/web/client
WEB_ENVIRONMENT = CC_wasm32_wasip1=clang AR_wasm32_wasip1=llvm-ar CFLAGS_wasm32_wasip1="-nostdlibinc -DRING_CORE_NOSTDLIBINC=1" \
    CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS="-C target-feature=+simd128"

web: $(WEB)/lanner.wasm ## the client for browsers, which the page of `lanner serve --web` and the npm package have; needs clang
$(WEB)/lanner.wasm: $(NATIVE_SOURCES)
	@command -v clang >/dev/null && command -v llvm-ar >/dev/null && command -v llvm-strip >/dev/null || \
	    { echo "make web: needs clang and LLVM's tools; install them, on Debian by 'apt-get install clang llvm'." >&2; exit 1; }
	rustup --quiet target add $(WEB_TARGET)
	$(WEB_ENVIRONMENT) $(CARGO) build --release --locked --target $(WEB_TARGET) --package lanner-wasm
	llvm-strip -o $@ $(or $(CARGO_TARGET_DIR),target)/$(WEB_TARGET)/release/lanner_wasm.wasm

test-wasm: ## the tests of kernels in WebAssembly; needs Node
	@command -v node >/dev/null || { echo "make test-wasm: needs Node; install it." >&2; exit 1; }
	rustup --quiet target add $(WEB_TARGET)
	$(WEB_ENVIRONMENT) CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings $(CURDIR)/tools/wasi.mjs" \
	    $(CARGO) test --locked --quiet --target $(WEB_TARGET) --package lanner-primitives --package lanner-ring --lib --tests

npm: web ## the npm package of that client in dist/
	mkdir -p dist
	npm pack --silent --pack-destination dist ./$(WEB)

demo: setup ## classify real handwritten digits privately: a server and a client on this machine
	@$(BIN)/lanner demo

test: setup ## every test but the long ones
	$(CARGO_TEST) -- --quiet
	$(CARGO_DOCTEST) -- --quiet
	$(PYTEST) -m "not slow and not alone" -n 3 --dist loadfile
	$(PYTEST) -m "not slow and alone"
	@echo "make test: every Rust and Python test passed."

test-all: setup ## the long tests too
	LANNER_ATTACKS=all $(CARGO_TEST) --workspace --bins --examples -- --quiet --include-ignored
	$(CARGO_DOCTEST) --workspace -- --quiet
	@if command -v node >/dev/null; then $(MAKE) --no-print-directory test-wasm; else echo "make test-all: no Node, so no tests in WebAssembly"; fi
	$(CARGO) check --quiet --manifest-path fuzz/Cargo.toml --no-default-features --target-dir target/fuzz
	$(PYTEST)
	@echo "make test-all: every Rust and Python test passed, the long ones included."

# Of Rust, the crates that have changes since the last commit, without those that use them; of Python, the unit tests.
check: setup ## formatting, lints, and the unit tests of what changed
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets --quiet -- --deny warnings
	$(BIN)/ruff format --check --quiet $(PYTHON_FOLDERS)
	$(BIN)/ruff check --quiet $(PYTHON_FOLDERS)
	$(BIN)/python tools/changed.py | xargs --no-run-if-empty $(CARGO) test --locked --quiet --lib
	$(PYTEST) -m "not slow and not alone" -n 2 python/tests/unit
	@echo "make check: nothing to complain of in what changed."

# Processors and systems that clients may have: everything below sockets and disks compiles for them.
OTHER_TARGETS = aarch64-unknown-linux-gnu wasm32-unknown-unknown

# Those that the whole native module compiles for, with the compilers of C that its parts in C need.
CROSS_TARGETS = aarch64-unknown-linux-gnu:aarch64-linux-gnu-gcc $(WINDOWS_TARGET):$(WINDOWS_COMPILER)

lint: $(VENV)/.requirements ## formatting, lints and types of both languages, direction of dependencies, links
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets --quiet -- --deny warnings
	$(BIN)/ruff format --check --quiet $(PYTHON_FOLDERS)
	$(BIN)/ruff check --quiet $(PYTHON_FOLDERS)
	$(BIN)/mypy --strict python/src python/tests bench tools/layers.py tools/rust_uses.py tools/links.py tools/against.py tools/public_api.py tools/docs_site.py \
	    tools/locked.py tools/sbom.py tools/same_wheel.py tools/newest_symbols.py tools/version_files.py deploy/health.py tools/endurance tools/wild
	MYPYPATH=tools/peers:. $(BIN)/mypy --strict tools/peers
	$(BIN)/python tools/layers.py
	$(BIN)/python tools/links.py
	rustup --quiet target add $(OTHER_TARGETS)
	for target in $(OTHER_TARGETS); do $(CARGO) check --locked --quiet --target $$target -p lanner-protocol -p lanner-plan -p lanner-quantize || exit 1; done
	for pair in $(CROSS_TARGETS); do target=$${pair%:*} compiler=$${pair#*:}; \
	    command -v $$compiler >/dev/null || { echo "make lint: the module for $$target is not checked: there is no $$compiler."; continue; }; \
	    rustup --quiet target add $$target; \
	    PYO3_NO_PYTHON=1 $(CARGO) check --locked --quiet --target $$target -p lanner-py --features extension-module || exit 1; done
	@echo "make lint: nothing to complain of."

# A benchmark that fails is told on the page, and by the last line's exit code.
bench: install ## measure everything on this machine (two hours; more where LANNER_DATA names test sets) and write docs/benchmarks.md
	rm -rf $(BENCH)
	mkdir -p $(BENCH)
	$(EXAMPLE) ring_bench -p lanner-ring -- --json > $(BENCH)/ring.jsonl
	$(EXAMPLE) kernels -p lanner-bfv -- --json > $(BENCH)/bfv.jsonl
	$(EXAMPLE) gc_bench -p lanner-gc -- --json > $(BENCH)/gc.jsonl
	for layer in fc 5x5/2 1x1 32x32x32; do $(EXAMPLE) layer_bench -p lanner-protocol -- --json 9 $$layer; done > $(BENCH)/layer.jsonl
	$(EXAMPLE) tabula_bench -p lanner-protocol -- --json > $(BENCH)/tabula.jsonl
	for mode in gazelle falcon "cheetah --rounding exact" tabula; do \
	    $(BIN)/lanner bench all --mode $$mode --save $(BENCH)/$${mode// --rounding /_}.json || true; done
	$(BIN)/lanner bench networks --mode cheetah --rounding faithful --save $(BENCH)/cheetah_faithful.json || true
	for mode in gazelle falcon "cheetah --rounding exact" "cheetah --rounding faithful"; do \
	    $(BIN)/lanner bench networks --mode $$mode --network lan,wan --only $(SHAPED) \
	        --save $(BENCH)/$${mode// --rounding /_}_shaped.json || true; done
	$(BIN)/lanner bench networks --mode tabula --network lan,wan --only $(LOOKED_UP) --repeat 1 \
	    --save $(BENCH)/tabula_shaped.json || true
	test -z "$${LANNER_DATA:-}" || for mode in gazelle falcon cheetah tabula; do \
	    $(BIN)/python -m bench.accuracy --mode $$mode --data "$$LANNER_DATA" --secure; done > $(BENCH)/accuracy.jsonl
	$(BIN)/python -m bench.collect $(BENCH)/*.json $(BENCH)/*.jsonl --json docs/benchmarks.json --page docs/benchmarks-data.md --summary docs/benchmarks.md
	$(BIN)/lanner doctor --calibrate --state-dir $(BENCH)/state
	$(BIN)/python -m bench estimates --network loopback,lan,wan --state-dir $(BENCH)/state

$(PEERS)/.requirements: tools/peers/requirements.txt
	@$(PEERS_PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	    { echo "make bench-peers: SPU is compared under Python 3.11; name one, as in 'make PEERS_PYTHON=python3.11 bench-peers'." >&2; exit 1; }
	$(PEERS_PYTHON) -m venv --clear $(PEERS)/venv
	$(PEERS)/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --requirement $<
	@touch $@

# PEERS_ONLY=mnist_d,vgg16 compares these networks and leaves the page's others as they are.
bench-peers: install $(PEERS)/.requirements ## the same networks in SecretFlow-SPU by turns with ours, into docs/benchmarks.md
	rm -f $(PEERS)/peers.json
	-PYTHONPATH=. $(BIN)/python tools/peers/compare.py --python $(PEERS)/venv/bin/python $(if $(PEERS_ONLY),--only $(PEERS_ONLY)) --save $(PEERS)/peers.json
	$(BIN)/python -m bench.collect --peers $(PEERS)/peers.json --json docs/benchmarks.json --page docs/benchmarks-data.md --summary docs/benchmarks.md

# BEFORE names a checkout of the older build, in which `make install` was run, or `make setup` before there was that.
bench-against: install ## an older build and this one by turns, into docs/benchmarks.md
	@test -n "$(BEFORE)" || { echo "make bench-against: name a checkout of the older build, as in 'make bench-against BEFORE=../before'." >&2; exit 1; }
	mkdir -p $(BENCH)
	$(BIN)/python tools/against.py --before $(BEFORE) --save $(BENCH)/versions.json
	$(BIN)/python -m bench.collect --versions $(BENCH)/versions.json --json docs/benchmarks.json --page docs/benchmarks-data.md --summary docs/benchmarks.md

# ONLY=soak,kill runs these trials, SCALE=0.1 a tenth of each; of the others the page tells the records that are kept. Some want root, and some
# cargo-fuzz, Miri or a C compiler: a trial that cannot be run here says so, on the page too. FUZZ_TARGETS=plan,graph fuzzes these targets, and
# SOAK_MODES=falcon soaks this mode: the record keeps what it has of the others.
endurance: install ## five hours or more of trials: many clients, soak, deaths, bad links, fuzzing; writes docs/reliability.md
	PYTHONPATH=tools:python/tests $(BIN)/python -m endurance $(if $(ONLY),--only $(ONLY)) --scale $(SCALE) \
	    --save $(ENDURANCE) --page docs/reliability.md

# ONLY=alexa,magika takes these models, SECONDS=600 lets a command take ten minutes: of the others the page has what is kept.
wild: install ## models that public packages ship, downloaded and compared with onnxruntime; writes docs/wild.md
	PYTHONPATH=tools:. $(BIN)/python -m wild $(if $(ONLY),--only $(ONLY)) $(if $(SECONDS),--seconds $(SECONDS))

docs: $(VENV)/.requirements $(DOCS)/.requirements ## the pages in target/site, the Rust reference in target/doc; links are checked
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --locked --workspace --no-deps
	$(BIN)/python tools/links.py
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict

# What makes the pages stays apart from what the tests need.
$(DOCS)/.requirements: $(DOCS_LOCK)
	$(PYTHON) -m venv --clear $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(DOCS_LOCK)
	@touch $@

wheel: $(VENV)/.requirements sbom ## a wheel for this platform in dist/, built from nothing so that its bytes follow from the sources
	@PYTHON="$(PYTHON)" CARGO="$(CARGO)" tools/preflight
	rm -rf target/wheel
	$(REPRODUCIBLE) $(BUILD_WHEEL) --target-dir target/wheel --out dist
	cp $(SBOM) dist/

$(WHEELS)/.requirements: $(WHEELS_LOCK)
	$(PYTHON) -m venv --clear $(WHEELS)
	$(WHEELS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(WHEELS_LOCK)
	@touch $@

wheels: $(WHEELS)/.requirements sbom ## wheels for Linux of x86-64 and of aarch64, for macOS of aarch64, and for Windows where mingw-w64 is installed, in dist/
	rustup --quiet target add $(LINUX_TARGETS) $(MAC_TARGET)
	for target in $(LINUX_TARGETS); do \
	    $(REPRODUCIBLE) $(BUILD_WHEELS) --zig --compatibility $(GLIBC) --target $$target || exit 1; done
	$(PYTHON) tools/newest_symbols.py dist/lanner-*-$(GLIBC)_*.whl
	$(REPRODUCIBLE) $(BUILD_WHEELS) --zig --target $(MAC_TARGET)
	if command -v $(WINDOWS_COMPILER) >/dev/null; then rustup --quiet target add $(WINDOWS_TARGET); \
	    $(REPRODUCIBLE) $(BUILD_WHEELS) --target $(WINDOWS_TARGET); \
	else echo "make wheels: none for Windows, for want of $(WINDOWS_COMPILER) (on Debian 'apt-get install gcc-mingw-w64-x86-64')." >&2; fi
	cp $(SBOM) dist/

reproduce: $(VENV)/.requirements sbom ## build that wheel twice, in folders of their own, and compare the bytes
	@PYTHON="$(PYTHON)" CARGO="$(CARGO)" tools/preflight
	rm -rf target/reproduce
	for run in first second; do \
	    $(REPRODUCIBLE) $(BUILD_WHEEL) --target-dir target/reproduce/$$run/target --out target/reproduce/$$run; done
	$(BIN)/python tools/same_wheel.py target/reproduce/first/lanner-*.whl target/reproduce/second/lanner-*.whl

sbom: $(VENV)/.requirements ## a bill of materials, CycloneDX, of every locked package of both languages, in target/sbom
	CARGO="$(CARGO)" $(BIN)/python tools/sbom.py $(SBOM)

$(AUDIT)/.requirements: $(AUDIT_LOCK)
	$(PYTHON) -m venv --clear $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(AUDIT_LOCK)
	@touch $@

# Weaknesses of Python's packages are asked for by the versions that are locked.
audit: $(AUDIT)/.requirements ## licences, sources, known weaknesses and unused ones of the dependencies (fetches the RustSec database)
	@for tool in deny machete; do $(CARGO) $$tool --version >/dev/null 2>&1 || \
	    { echo "make audit: needs cargo-$$tool; run 'cargo install --locked cargo-$$tool'." >&2; exit 1; }; done
	$(CARGO) machete
	$(CARGO) deny --locked check bans licenses sources
	$(CARGO) deny --locked check advisories
	for lock in $(LOCK) $(DOCS_LOCK) $(WHEELS_LOCK) $(AUDIT_LOCK); do $(AUDIT)/bin/pip-audit --require-hashes --disable-pip --requirement $$lock; done

clean: ## remove everything that was built
	rm -rf $(WEB)/lanner.wasm target fuzz/target dist $(VENV) .mypy_cache .ruff_cache .pytest_cache

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
