"""Nothing is imported before it is needed; a library that is missing or broken is an ImportError that names it."""

import subprocess
import sys

import pytest

import lately
from lately import plot

MADE = """
import lately
f = lately.AgePartitionedBloomFilter(100, 0.01)
timed = lately.TimingBloomFilter("1h", 0.01, capacity=100)
exact = lately.ExactFilter(100)
"""
NEED_ARRAYS = [
    "f.query(['a'])",
    "f.duplicated(['a'])",
    "timed.insert(['a'], at=[0.0])",
    "f.posterior(['a'], 0.5)",
    "timed.add('a', at=0) or timed.latest",
    "f.fill",
    "exact.query(['a'])",
    "exact.duplicated(['a'])",
    "lately.hash_keys(['a'])",
    "lately.Hashes([1])",
    "lately.duplicated(['a', 'a'], 10)",
    "lately.plan(100, 0.01)",
]


def lines(code, **options):
    """Run code in a process of its own, which must end well; return the lines that it prints."""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **options)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.splitlines()


def test_the_first_claim_imports_nothing():
    """A handler of signals may claim a key while the program's own first claim is on its way."""
    claim = "with f.once('a'), exact.once('a'), timed.once('a'): pass"
    assert lines(f"import sys{MADE}before = set(sys.modules)\n{claim}\nprint(set(sys.modules) - before)") == ["set()"]


@pytest.fixture
def broken(tmp_path):
    """Return a folder whose NumPy cannot be imported."""
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise ImportError('this NumPy is for another Python')")
    return tmp_path


def test_a_call_that_needs_numpy_raises_its_import_error_and_inserts_nothing(broken):
    """Each call is the first of its process that needs NumPy."""
    code = f"""{MADE}
import os
for call in {NEED_ARRAYS}:
    child = os.fork()
    if child == 0:
        try:
            exec(call)
        except ImportError as error:
            print(call, error, f.inserted, exact.inserted, sep=": ", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
    assert lines(code, cwd=broken) == [f"{call}: this NumPy is for another Python: 0: 0" for call in NEED_ARRAYS]


def test_calls_for_one_key_need_no_numpy(broken):
    code = f"""{MADE}
f.insert(["a"])
exact.add("a")
timed.add("a", at=0)
print("a" in f, f.seen("b"), "a" in exact, timed.seen("a", at=9), exact.seen("b"))
"""
    assert lines(code, cwd=broken) == ["True False True True False"]


def test_an_import_of_numpy_that_is_forbidden_is_an_import_error():
    """As tests and sandboxes forbid it: None stands for the module."""
    code = f"""
import sys
sys.modules["numpy"] = None
{MADE}
try:
    f.query(["a"])
except ImportError as error:
    print(error, f.inserted)
"""
    assert lines(code) == ["import of numpy halted; None in sys.modules 0"]


def test_a_subinterpreter_is_named():
    """As under mod_wsgi, which has one for each application."""
    pytest.importorskip("_xxsubinterpreters")
    application = f"""{MADE}
print(f.seen("a"), f.seen("a"))
try:
    f.duplicated(["a"])
except ImportError as error:
    print(str(error).split(":")[0])
"""
    code = f"import _xxsubinterpreters as sub; sub.run_string(sub.create(isolated=False), {application!r})"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    named = "lately does not run in a subinterpreter; with mod_wsgi set WSGIApplicationGroup %{GLOBAL}"
    assert done.stdout == f"False True\n{named}\n", done.stderr
    assert "panicked" not in done.stderr


def test_libraries_and_modules_are_imported_on_first_use():
    code = """
import sys, lately
ours = [f"lately.{name}" for name in ("baselines", "distributed", "plot", "priors")]
print(*(name for name in sys.modules if name.startswith(("lately.integrations", *ours))))
lately.Filter(1000, 0.001).seen("a")
print("numpy" in sys.modules)
lately.hash_keys(["key", 5, None, ("a", 1)])
print([getattr(lately, name.removeprefix("lately.")).__name__ for name in ours] == ours)
print(*{"fsspec", "matplotlib", "pandas", "polars", "pyarrow", "ray"} & {*sys.modules})
sys.modules["ray"] = None
from lately.distributed import RaySites, deduplicate
for call in (lambda: RaySites(2), lambda: deduplicate(None, "ip", 5)):
    try:
        call()
    except ImportError as error:
        print("pip install 'ray[data]'" in str(error))
"""
    assert lines(code) == ["", "False", "True", "", "True", "True"]


@pytest.mark.parametrize("library", ["pandas", "polars", "matplotlib"])
def test_a_call_that_needs_a_missing_library_names_it(library, monkeypatch):
    adapter = f"lately.integrations.{library}"
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot" if library == "matplotlib" else library, None)
    monkeypatch.delitem(sys.modules, adapter, raising=False)
    with pytest.raises(ImportError, match=f"pip install {library}"):
        plot.calibration([0.5], [True]) if library == "matplotlib" else lately.integrations.__getattr__(library)
    assert adapter not in sys.modules


def test_an_adapter_that_there_is_not_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"no attribute 'kafka2'; the adapters are .*logging"):
        lately.integrations.kafka2  # noqa: B018
