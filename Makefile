# The handful of things that one does here. What needs an `if` lives in tests/setup.

# Tools that tests/setup installs come before the machine's own.
export PATH := $(CURDIR)/tests/.venv/bin:$(PATH)

# How the program is linked on this system. Half of what a hook costs would otherwise be the loader,
# and a third of the rest the way to functions that lie far apart.
LINK_Linux := -C target-feature=+crt-static -C relocation-model=static -C linker=host/relay-mesh/layout/linker -W linker-messages

# What the runs of the real clients have proven is noted here, for the wake table.
export RELAY_SIGHTINGS := $(CURDIR)/tests/.sightings
CLIENTS := --workspace --test claude_code --test clients --test codex --test codex_terminals --test opencode --test sessions
WAKE_TABLE := cargo nextest run --locked --workspace --test wake_table --run-ignored only

.PHONY: run release release-musl test clients lint bench plugins demo setup

# Starts the host on the embedded store. It says itself where it listens and what to do next.
run:
	cargo run --locked -p relay-mesh -- serve

# Builds target/release/relay-mesh: to be copied into the PATH, and what `bench` measures.
release:
	cargo rustc --release --locked -p relay-mesh --bin relay-mesh -- $(LINK_$(shell uname -s))

# The same on musl (Linux), into target/TRIPLE/release: short commands start a fifth quicker, and a server
# takes a fifth more of the processor (docs/adr/0012). Its C takes any C compiler.
MUSL := $(shell uname -m)-unknown-linux-musl
export CC_$(subst -,_,$(MUSL)) := cc
release-musl:
	rustup target add $(MUSL)
	cargo rustc --release --locked --target $(MUSL) -p relay-mesh --bin relay-mesh -- -C relocation-model=static

# All tests, the real clients included.
test: setup
	rm -f $(RELAY_SIGHTINGS)
	cargo nextest run --locked --workspace
	$(WAKE_TABLE)
	cargo test --locked --workspace --doc

# The tests with real harnesses alone, and the wake table in docs/ anew from what they saw.
clients: setup
	rm -f $(RELAY_SIGHTINGS)
	cargo nextest run --locked $(CLIENTS) --success-output final
	RELAY_WAKE_TABLE_WRITE=1 $(WAKE_TABLE)

# Everything that can be said of the code without running it. The advisory database is not asked:
# it lies outside of the package registries.
lint: setup
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps
	cargo deny --locked check bans licenses sources
	typos

# Measures against the budgets. See docs/benchmarks.md.
bench: release setup
	cargo run --release --locked -p bench
	cargo run --release --locked -p bench --bin wake
	cargo run --release --locked -p bench --bin nats
	cargo run --release --locked -p store --example contention
	cargo run --release --locked -p adapters --example instance
	cargo run --release --locked -p mcp --example throughput

# Builds every adapter into plugins/NAME/NAME.wasm, for `relay-mesh serve --plugins ./plugins`.
plugins:
	cargo build --locked -p adapters

# The main run, with the real client and a scripted model, told as a readable transcript.
demo: setup
	cargo nextest run --locked --workspace --test claude_code --no-capture two_agents_talk

# What the tests need and this machine does not have.
setup:
	tests/setup
