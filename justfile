# The commands one types: `just`, from https://just.systems or `pip install rust-just`, lists them.

_list:
    @just --list --unsorted

# everything that must pass: Python, Rust, linters, types, notebooks
test *arguments:
    uv run pytest {{ arguments }}

# minutes of trials beyond those of `test`
campaign:
    uv run pytest -m campaign

# the core alone, without Python
core *arguments:
    cargo test {{ arguments }}

# the linters and types alone, on what is built
lint:
    uv run pytest tests/test_house.py -k "not cargo"

# all that can be put right without thinking
fix:
    cargo fmt
    uv run ruff check --fix
    uv run ruff format
    uv run typos --write-changes

# the core's documents: hashing scheme and saved form
doc:
    cargo doc --no-deps --open

# speed, error and memory beside others
bench:
    uv run --group bench benchmarks/how_fast.py

# licences and sources of the crates: needs `cargo install cargo-deny --locked`
deny:
    cargo deny check licenses bans sources

# the lock, after a change of dependencies
lock:
    uv lock
    cargo update --workspace

# the checks of each commit, from now on: needs `pip install pre-commit`
hooks:
    pre-commit install
