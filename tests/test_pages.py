"""The blocks with ``>>>`` on a page print what it says."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(>>>.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> str:
    return "\n".join(BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8")))


# A page may catch a warning and show it.
@pytest.mark.filterwarnings("always::lately.distributed.FailedSitesWarning")
@pytest.mark.parametrize("page", ["over-many-machines.md"])
def test_page(page, ray_cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    # By this name Ray sends functions of the page whole, and does not look for a module.
    names = {"__name__": "__main__", "folder": tmp_path}
    test = doctest.DocTestParser().get_doctest(blocks(page), names, page, None, None)
    assert len(test.examples) > 10
    failures: list[str] = []
    doctest.DocTestRunner().run(test, out=failures.append)
    assert not failures, "".join(failures)
