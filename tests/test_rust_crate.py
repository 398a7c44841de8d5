"""The Rust crate as others get it: its package, its examples, and the loom model of its concurrent filter."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lately

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
RIVALS = "benchmarks/rust/Cargo.toml"

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")


def run(*command, **options):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def example():
    """Run an example, built as `cargo test` builds it."""
    built = run("cargo", "build", "--locked", "--package", "lately", "--profile", "test", "--examples")
    assert built.returncode == 0, built.stderr

    def output(name, *arguments, lines=()):
        program = ROOT / "target/debug/examples" / name
        done = run(program, *arguments, input="".join(f"{line}\n" for line in lines))
        assert done.returncode == 0, done.stderr
        return done.stdout

    return output


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


def test_of_eight_threads_one_handles_each_web_hook(example):
    handled = int(re.match(r"(\d+) events were handled once, of 800,000 deliveries", example("web_hooks"))[1])
    assert 99_990 <= handled <= 100_000


def test_of_two_copies_of_a_packet_one_passes(example):
    passed = int(re.match(r"(\d+) of 200,000 packets passed", example("packets"))[1])
    assert 99_900 <= passed <= 100_000


def test_a_mask_of_integers_is_that_of_the_python_package(example):
    numbers = np.arange(10_000_000) ** 2 % 4_000_037
    repeats = int(lately.Filter(window=1_000_000, fpr=0.001).duplicated(numbers).sum())
    assert example("mask_integers") == f"{repeats} of 10000000 are repeats\n"


def test_an_exact_window_of_lines_prints_those_that_are_new(example):
    lines = [str(i % 1500) for i in range(3000)] + ["7", "7", "8"]
    exact = lately.duplicated(lines, window=1000)
    assert example("exact_window", lines=lines).split() == [
        line for line, repeat in zip(lines, exact, strict=True) if not repeat
    ]


def test_posteriors_are_those_of_the_python_package(example):
    f = lately.Filter(window=10_000, fpr=0.01)
    f.insert(range(10_000))
    keys = [1, 9_999, 20_000]
    posteriors, decisions = example("posterior").splitlines()
    numbers = [float(number) for number in re.findall(r"[\d.]+(?:e-?\d+)?", posteriors.partition("]")[0])]
    assert numbers == pytest.approx(f.posterior(keys, 1e-4), rel=1e-12)
    assert decisions.startswith(str(f.decide(keys, 1e-4, false_positive=1, false_negative=10).tolist()).lower())


def test_a_service_in_rust_goes_on_with_the_file_of_a_python_job(example, tmp_path):
    path = tmp_path / "seen.lately"
    yesterday = [f"order {i}" for i in range(1000)]
    filled = run(sys.executable, EXAMPLES / "fill.py", path, input="\n".join(yesterday) + "\n")
    assert filled.returncode == 0, filled.stderr
    today = [f"order {i}" for i in range(500, 1500)]
    assert example("go_on", path, lines=[*today, "Käse 🧀"]).splitlines() == [*today[500:], "Käse 🧀"]
    # And Python goes on with what the service has saved.
    f = lately.open(path)
    assert f.inserted == 2001
    assert f.query([*yesterday, *today, "Käse 🧀"]).all()
    assert not f.seen("order 1500")


@pytest.mark.parametrize("missing", ["same", "distinct"])
@pytest.mark.parametrize("seed", [7, bytes(range(16))])
def test_an_exact_window_of_python_goes_on_in_rust_and_back(example, tmp_path, seed, missing):
    path = tmp_path / "exact.lately"
    exact = lately.ExactFilter(3, seed=seed, missing=missing)
    exact.insert(["a", "b", "c"])
    exact.save(path)
    assert example("exact_window", path, lines=["a", "d", "b", "d"]).splitlines() == ["d", "b"]
    back = lately.open(path)
    assert (back.inserted, back.missing) == (7, missing)
    assert back.query(["a", "b", "c", "d"]).tolist() == [False, True, False, True]


def test_an_exact_window_is_opened_as_any_filter_is(example, tmp_path):
    lately.ExactFilter(10).save(tmp_path / "exact.lately")
    assert example("go_on", tmp_path / "exact.lately", lines=["a", "b", "a"]).splitlines() == ["a", "b"]


@pytest.mark.campaign
def test_the_model_of_a_page_passes_and_each_mutant_fails():
    model = run(sys.executable, "tests/model/mutants.py")
    assert model.returncode == 0, model.stdout + model.stderr
    assert model.stdout.count("fails, as it should") == 3


@pytest.mark.campaign
def test_a_log_of_tokens_for_quinn_accepts_each_once():
    """The benchmark beside other crates compiles, and so does its example, with the crates that they need."""
    checked = run("cargo", "check", "--locked", "--all-targets", "--manifest-path", RIVALS)
    assert checked.returncode == 0, checked.stderr
    # The example checks its own count.
    log = run("cargo", "run", "--locked", "--release", "--manifest-path", RIVALS, "--example", "token_log")
    assert log.returncode == 0, log.stderr
