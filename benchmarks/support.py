"""`tests/support`, under the name by which tests import it."""

from pathlib import Path

__path__ = [str(Path(__file__).parents[1] / "tests" / "support")]
