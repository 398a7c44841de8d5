# The commands one types: `just`, from https://just.systems or `pip install rust-just`, lists them.

_list:
    @just --list --unsorted

# everything that must pass: Python, Rust, linters, types, notebooks
test *arguments:
    uv run pytest {{ arguments }}

# minutes of trials beyond those of `test`
campaign:
    uv run pytest -m campaign

# any bytes or calls, without end: operations, saved or records; see fuzz/README.md
fuzz target *arguments:
    mkdir -p fuzz/corpus/{{ target }}
    {{ if target == "saved" { "uv run python fuzz/seeds.py fuzz/corpus/saved" } else { "" } }}
    cargo +nightly fuzz run -s ${SANITIZER:-address} {{ target }} fuzz/corpus/{{ target }} -- \
        -max_len={{ if target == "operations" { "160" } else if target == "saved" { "4400" } else { "8300" } }} \
        -malloc_limit_mb=0 -timeout=120 {{ arguments }}

# the core's tests under a sanitizer, address or thread; needs nightly and, for thread, its rust-src
sanitize which *arguments:
    ASAN_OPTIONS=allocator_may_return_null=1 RUSTFLAGS="-Zsanitizer={{ which }}" \
        cargo +nightly test {{ if which == "thread" { "-Zbuild-std" } else { "" } }} \
        --target x86_64-unknown-linux-gnu --target-dir target/{{ which }} {{ arguments }}

# tests of all that is or meets unsafe code under Miri, a thousand times slower; needs nightly's miri
miri *tests="memory::words key::batch key::sip layout::line::tests::all family::aged_cuckoo::tests::every_format":
    MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-disable-isolation" RUSTFLAGS="-Ctarget-feature=+avx2" \
        cargo +nightly miri test --lib -- {{ tests }} --skip do_not_fit

# single keys, files and unions under valgrind: its report names what lies in lately by `_core.abi3.so`
memcheck:
    PYTHONMALLOC=malloc uv run valgrind --num-callers=12 --log-file=target/memcheck.log python fuzz/memcheck.py
    ! grep _core.abi3 target/memcheck.log

# the core alone, without Python
core *arguments:
    cargo test {{ arguments }}

# the linters and types alone, on what is built
lint:
    uv run pytest tests/test_linters.py -k "not cargo"

# all that can be put right without thinking
fix:
    cargo fmt
    uv run ruff check --fix
    uv run ruff format
    uv run typos --write-changes

# the core's documents: hashing scheme and saved form
doc:
    cargo doc --no-deps --open

# the site, into target/site; `just docs serve` shows it as you write
docs command="build":
    NO_MKDOCS_2_WARNING=1 uv run --group docs mkdocs {{ command }}

# speed, error and memory beside others
bench:
    uv run --group bench benchmarks/how_fast.py

# licences and sources of the crates, or `just deny advisories`: needs `cargo install cargo-deny --locked`
deny *what="licenses bans sources":
    cargo deny check {{ what }}

# the lock, after a change of dependencies
lock:
    uv lock
    cargo update --workspace

# the checks of each commit, from now on: needs `pip install pre-commit`
hooks:
    pre-commit install
