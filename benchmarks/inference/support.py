"""`benchmarks/support` and `tests/support`, under the name by which all benchmarks import them."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
__path__ = [str(ROOT / "benchmarks" / "support"), str(ROOT / "tests" / "support")]
