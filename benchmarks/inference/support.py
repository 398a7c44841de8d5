"""`tests/support`, by the name that tests know it by."""

from pathlib import Path

__path__ = [str(Path(__file__).parents[2] / "tests" / "support")]
