"""What several benchmarks measure with, and `tests/support`, which tests and benchmarks share."""

from pathlib import Path

__path__.append(str(Path(__file__).parents[2] / "tests" / "support"))
