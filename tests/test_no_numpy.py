"""A NumPy that cannot be imported: calls that need it raise its ImportError, and the others work."""

import subprocess
import sys

import pytest

MADE = """
import lately
f = lately.AgePartitionedBloomFilter(100, 0.01)
timed = lately.TimingBloomFilter("1h", 0.01, capacity=100)
exact = lately.ExactFilter(100)
learned = lately.Learned(100)
"""
NEED_ARRAYS = {
    "query": "f.query(['a'])",
    "duplicated": "f.duplicated(['a'])",
    "a time for each key": "timed.insert(['a'], at=[0.0])",
    "posterior": "f.posterior(['a'], 0.5)",
    "latest": "timed.add('a', at=0) or timed.latest",
    "cells": "timed.cells(['a'])",
    "fill": "f.fill",
    "exact query": "exact.query(['a'])",
    "exact duplicated": "exact.duplicated(['a'])",
    "hash_keys": "lately.hash_keys(['a'])",
    "hashes": "lately.Hashes([1])",
    "a learned prior": "learned.insert(['a']) or learned.probability(['a'])",
    "a column": "lately.duplicated(['a', 'a'], 10)",
    "plan": "lately.plan(100, 0.01)",
}


def run(tmp_path, code):
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise ImportError('this NumPy is for another Python')")
    return subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)


@pytest.mark.parametrize("call", NEED_ARRAYS.values(), ids=NEED_ARRAYS)
def test_a_call_that_needs_numpy_raises_its_import_error_and_inserts_nothing(tmp_path, call):
    code = f"""{MADE}
try:
    {call}
except ImportError as error:
    print(error, f.inserted, exact.inserted)
"""
    ended = run(tmp_path, code)
    assert (ended.stdout, ended.stderr) == ("this NumPy is for another Python 0 0\n", "")


def test_calls_for_one_key_need_no_numpy(tmp_path):
    code = f"""{MADE}
f.insert(["a"])
exact.add("a")
timed.add("a", at=0)
print("a" in f, f.seen("b"), "a" in exact, timed.seen("a", at=9), exact.seen("b"))
"""
    ended = run(tmp_path, code)
    assert (ended.stdout, ended.stderr) == ("True False True True False\n", "")


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
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stderr == ""
    assert ended.stdout == "import of numpy halted; None in sys.modules 0\n"
