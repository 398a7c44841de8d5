"""Errata of the papers are cited by ids, which the page of errata explains."""

import re

from support.tree import ROOT, tracked

PAGE = ROOT / "docs" / "explanation" / "errata.md"
ID = re.compile(r"\b(?:APBF|APBBF|GEBF|TLBF|OIE|INF)-\d+\b")


def test_every_erratum_that_is_cited_is_on_the_page():
    rows = re.findall(rf"^\| ({ID.pattern}) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(set(rows)) == 52
    cited = {
        (erratum, path.relative_to(ROOT).as_posix())
        for path in tracked(".rs", ".py", ".md", ".ipynb")
        for erratum in ID.findall(path.read_text(encoding="utf-8"))
    }
    assert len(cited) > 100
    assert sorted((erratum, path) for erratum, path in cited if erratum not in rows) == []
