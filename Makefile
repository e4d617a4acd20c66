# The handful of things that one does here. What needs an `if` lives in tests/setup.

# Tools that tests/setup installs come before the machine's own.
export PATH := $(CURDIR)/tests/.venv/bin:$(PATH)

# What is released for Linux stands on musl, with an allocator of its own (docs/adr/0012), as a static-pie program,
# as Rust links for musl (docs/adr/0017). Any C compiler will do for the little C in it: that allocator gives
# nothing back when the program ends anyway, and no function of glibc's alone is named.
BUILT := $(or $(CARGO_TARGET_DIR),target)
MUSL := $(shell uname -m)-unknown-linux-musl
export CC_$(subst -,_,$(MUSL)) := cc
CARGO_FOLDER := $(or $(CARGO_HOME),$(HOME)/.cargo)
C_OF_RELEASE := -std=gnu11 -U_FORTIFY_SOURCE -DMI_SKIP_COLLECT_ON_EXIT=1 \
    -ffile-prefix-map=$(CURDIR)=/relay-mesh -ffile-prefix-map=$(CARGO_FOLDER)=/cargo \
    -Wno-builtin-macro-redefined -D__DATE__="" -D__TIME__=""
export CFLAGS_$(subst -,_,$(MUSL)) := $(C_OF_RELEASE)
# No folder of this machine and, above, no time is in it, so that its bytes are the same wherever it is built
# (packaging/reproduce).
NO_FOLDERS = "--remap-path-prefix=$(CURDIR)=/relay-mesh","--remap-path-prefix=$(CARGO_FOLDER)=/cargo"
# The linker that Rust brings keeps one of functions that are the same, no tables for unwinding, and the addresses that
# the program corrects when it starts as bits (docs/adr/0045).
# Its folder is asked for when it is needed: on a fresh machine it is not there before.
LLD = '"$$(rustc --print sysroot)/lib/rustlib/$$(rustc --print host-tuple)/bin/gcc-ld"'
SMALL = "-Cforce-unwind-tables=no","-Clink-arg=-B$(LLD)","-Clink-arg=-fuse-ld=lld","-Clink-arg=-Wl,--icf=all,-z,pack-relative-relocs,--no-eh-frame-hdr,-T,$(CURDIR)/packaging/linux.ld"

# On macOS the linker puts the list of crates into the program: once it is signed, nothing may be changed in it.
MAC := $(subst arm64,aarch64,$(shell uname -m))-apple-darwin
CRATES := $(abspath $(BUILT))/crates.dep-v0

# What the runs of the real clients have proven is noted here, for the wake table and the tables of kills and of driven agents.
export RELAY_OBSERVATIONS := $(CURDIR)/tests/.observations
CLIENTS := --workspace --test claude_code --test clients --test codex --test codex_terminals --test kills --test opencode --test sessions --test spawning
ON_RELEASED := RELAY_MESH_BINARY=$(abspath $(BUILT))/release/relay-mesh cargo nextest run --locked --workspace
WAKE_TABLE := cargo nextest run --locked --workspace --test wake_table --test seen_tables --run-ignored only

.PHONY: run release release-Linux release-Darwin test build-tests clients run-faults lint check-arm check-macos bench bench-age soak plugins demo demo-codex-calls-claude demo-claude-calls-codex demo-codex-tools demo-recording pictures dist dist-Linux dist-Darwin setup toolchain fresh-machine

# Starts the server on the embedded store. It says itself where it listens and what to do next.
run: toolchain
	cargo run --locked -p relay-mesh -- serve

# Builds target/release/relay-mesh: to be copied into the PATH, and what `bench` measures.
release: release-$(shell uname -s)

release-Linux:
	.config/toolchain $(MUSL)
	cargo build --release --locked --config 'target.$(MUSL).rustflags=[$(NO_FOLDERS),$(SMALL)]' --target $(MUSL) -p relay-mesh --bin relay-mesh
	install -D $(BUILT)/$(MUSL)/release/relay-mesh $(BUILT)/release/relay-mesh

release-Darwin: export CFLAGS_$(subst -,_,$(MAC)) := $(C_OF_RELEASE)
release-Darwin: toolchain
	python3 packaging/auditable.py $(MAC) $(CRATES)
	cargo rustc --release --locked --config 'target.$(MAC).rustflags=[$(NO_FOLDERS)]' -p relay-mesh --bin relay-mesh \
	    -- -C link-arg=-Wl,-sectcreate,__DATA,.dep-v0,$(CRATES)

release-%: toolchain
	cargo build --release --locked -p relay-mesh --bin relay-mesh

# Packs the release into dist/ as everything that people install it from, and installs each package in a clean root.
# `WRITE=1` puts its table into docs/releasing.md.
dist: dist-$(shell uname -s)

dist-Linux: release setup
	packaging/setup
	python3 packaging/pack.py --binary $(BUILT)/release/relay-mesh
	python3 packaging/crates.py
	packaging/check
	$(ON_RELEASED) --test packages --test installer --test crates --run-ignored all
	python3 packaging/table.py $(if $(WRITE),--write)

# What is of macOS alone; the rest is packed on Linux. It needs Python 3.11, and the machine's own is older.
dist-Darwin: release
	python3 packaging/pack.py --binary $(BUILT)/release/relay-mesh
	packaging/try

# All tests, the real clients included. Those of the product run what `release` builds: what is released is what is
# tested. Those of its parts stand in the parts, and are built with the checks of a debug build.
test: release setup
	rm -f $(RELAY_OBSERVATIONS)
	$(ON_RELEASED)
	$(ON_RELEASED) --test kills_by_frame --test released --run-ignored only
	$(WAKE_TABLE)
	cargo test --locked --workspace --doc

# What `test` builds beside the release: with `make -j2 release build-tests` both are built at once.
build-tests: setup
	cargo nextest run --locked --workspace --no-run

# The tests with real harnesses alone, and the tables in docs/ anew from what they saw.
clients: setup
	rm -f $(RELAY_OBSERVATIONS)
	cargo nextest run --locked $(CLIENTS) --success-output final
	RELAY_WAKE_TABLE_WRITE=1 $(WAKE_TABLE)

# What comes of a run of each real client when something goes wrong: writes the tables in docs/runs.md anew. It takes a
# quarter of an hour, and is to be run when a client is pinned anew; `make test` sees a part of it each time.
run-faults: setup
	rm -f $(RELAY_OBSERVATIONS)
	cargo nextest run --locked --workspace --test run_faults --test runs --run-ignored all --success-output final
	RELAY_WAKE_TABLE_WRITE=1 cargo nextest run --locked --workspace --test seen_tables --run-ignored only the_tables_of_runs

# Everything that can be said of the code without running it. The advisory database is not asked:
# it lies outside of the package registries.
lint: setup
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps
	cargo deny --locked check bans licenses sources
	typos

# Builds it for Linux on ARM64, on x86-64, and uses it by qemu. From nothing it takes 8 to 15 minutes.
check-arm: export CFLAGS_aarch64_unknown_linux_musl := $(C_OF_RELEASE)
check-arm:
	packaging/check-arm

# That all of it compiles for macOS: nothing is linked, and nothing runs. From nothing it takes twelve minutes, for both
# kinds of Mac about the same.
check-macos:
	.config/check-macos

# Measures against the budgets. See docs/benchmarks.md.
bench: release setup
	cargo run --profile rig --locked -p bench
	cargo run --profile rig --locked -p bench --bin wake
	cargo run --profile rig --locked -p bench --bin drive
	cargo run --profile rig --locked -p bench --bin watch
	cargo run --profile rig --locked -p bench --bin nats
	cargo run --profile rig --locked -p bench --bin contention
	cargo run --profile rig --locked -p relay-mesh-adapters --example instance
	cargo run --profile rig --locked -p relay-mesh-mcp --example throughput

# Two real clients of each harness in one project, with scripted models, at random for an hour: mail, prompts, Esc,
# kills, clears. `MINUTES=5` is shorter, `SEED=…` repeats a run's choices, `HARNESSES=codex,opencode` names some.
# `WRITE=1` puts its table into the README and docs/receipts.md.
soak: release setup
	RELAY_MESH_BINARY=$(CURDIR)/target/release/relay-mesh cargo run --locked -p bench --bin soak

# What a data folder's age costs: a day, a month, a year, and ten years at a tenth of the volume. Takes half an hour
# and 40 GB; `cargo run --profile rig -p bench --bin age -- --help` says how to measure less.
bench-age: release setup
	cargo run --profile rig --locked -p bench --bin age -- --plot docs/age-growth.svg

# Builds every adapter into plugins/NAME/NAME.wasm, for `relay-mesh serve --plugins ./plugins`.
plugins: toolchain
	cargo build --locked -p relay-mesh-adapters

# The main run, with the real client and a scripted model, told as a readable transcript.
demo: setup
	cargo nextest run --locked --workspace --test claude_code --no-capture two_agents_talk

# One harness calls another by MCP: both are real, their models are scripted. `setup` sees to what it needs; all of it
# runs isolated, so nothing is left however it ends.
demo-codex-calls-claude: setup
	cargo nextest run --locked --workspace --test runners_over_mcp --no-capture b9_codex_calls_claude

demo-claude-calls-codex: setup
	cargo nextest run --locked --workspace --test runners_over_mcp --no-capture b9_claude_calls_codex

# Claude Code asks Codex by the tool `codex`, and Codex asks Claude Code by `ask_agent`.
demo-codex-tools: setup
	cargo nextest run --locked --workspace --test codex_tools --no-capture f1_claude_asks_codex_and_codex_asks_claude

# Two real clients that talk, recorded from their terminals beside `relay-mesh ui`: writes docs/pictures/two-agents.svg.
demo-recording: setup
	cargo nextest run --locked --workspace --test pictures --run-ignored only --no-capture a_recording

# The other pictures of the docs.
pictures: setup
	RELAY_PICTURES_WRITE=1 cargo nextest run --locked --workspace --test pictures --run-ignored all -E 'not test(a_recording)'

# What the tests need and this machine does not have.
setup: toolchain
	tests/setup

# What the builds need and rustup may not have.
toolchain:
	.config/toolchain

# That a machine with rustup alone gets all of it.
fresh-machine:
	tests/fresh-machine
