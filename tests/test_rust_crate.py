"""The Rust crate as others get it: its package, and the loom model of its concurrent filter."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def cached(manifest):
    return run("cargo", "fetch", "--offline", "--locked", "--manifest-path", manifest).returncode == 0


def test_the_package_contains_the_crate_and_no_python():
    listed = run("cargo", "package", "--list", "--offline", "--allow-dirty")
    assert listed.returncode == 0, listed.stderr
    files = set(listed.stdout.split())
    assert {"LICENSE-MIT", "LICENSE-APACHE", "src/README.md", "src/lib.rs", "examples/web_hooks.rs"} <= files
    assert not [file for file in files if file.startswith(("python/", "crates/", "docs/"))]
    assert not [file for file in files if file.endswith((".py", ".ipynb")) and not file.startswith("tests/golden/")]


def test_default_features_need_at_most_five_dependencies():
    tree = run("cargo", "tree", "--offline", "--package", "lately", "--edges", "normal,build", "--prefix", "none")
    assert tree.returncode == 0, tree.stderr
    names = {line.split()[0] for line in tree.stdout.splitlines() if line} - {"lately"}
    assert 0 < len(names) <= 5, names
    assert "getrandom" not in names


@pytest.mark.skipif(
    not (ROOT / "target/model/release").exists(), reason="builds loom for a minute: python tests/model/mutants.py"
)
def test_the_model_of_a_page_passes_and_each_mutant_fails():
    model = run(sys.executable, "tests/model/mutants.py")
    assert model.returncode == 0, model.stdout + model.stderr
    assert model.stdout.count("fails, as it should") == 3


@pytest.mark.campaign
def test_the_benchmark_beside_other_crates_compiles():
    manifest = "benchmarks/rust/Cargo.toml"
    if not cached(manifest):
        pytest.skip("needs the crates it compares with: cargo fetch --manifest-path benchmarks/rust/Cargo.toml")
    checked = run("cargo", "check", "--offline", "--locked", "--all-targets", "--manifest-path", manifest)
    assert checked.returncode == 0, checked.stderr
