"""The code of every page of the site runs, and prints what the page shows; the site is whole."""

import inspect
import pydoc
import re

import griffe
import pytest

import lately
import lately.baselines
import lately.distributed
from support import pages
from support.tree import ROOT, tracked

DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
ON_RAY = ["how-to/ray.md"]
# These catch a warning and show it.
WARNINGS = pytest.mark.filterwarnings("always::lately.distributed.FailedSitesWarning")


def run(page, path, monkeypatch):
    text = (DOCS / page).read_text(encoding="utf-8")
    monkeypatch.chdir(pages.folder(path, ROOT))
    # By this name Ray sends functions of the page whole, and does not look for a module.
    pages.run(text, page, {"__name__": "__main__", "folder": path})


@WARNINGS
@pytest.mark.parametrize("page", [page for page in PAGES if page not in ON_RAY])
def test_page(page, tmp_path, monkeypatch):
    run(page, tmp_path, monkeypatch)


@WARNINGS
@pytest.mark.parametrize("page", ON_RAY)
def test_page_on_ray(page, ray_cluster, tmp_path, monkeypatch):
    run(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_that_are_not_run_are_marked(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    apart = [block for block in pages.blocks(text) if not block.run]
    assert bool(apart) == ("not run by the tests" in " ".join(text.split()))


SHOWN = re.findall(r"^::: (\S+)$", "".join(path.read_text() for path in DOCS.glob("reference/**/*.md")), re.MULTILINE)


def test_the_reference_has_every_public_name():
    public = {f"lately.{name}" for name in [*lately.__all__, "open"]} - {"lately.__version__"}
    for part in (lately.plot, lately.distributed, lately.baselines):
        public |= {f"{part.__name__}.{name}" for name in part.__all__}
    assert public <= {*SHOWN}


def documented(described):
    """Yield each function and class that a page shows, with its members."""
    yield described
    if isinstance(described, griffe.Class):
        for member in described.members.values():
            if isinstance(member, griffe.Function) and not member.name.startswith("_"):
                yield member


def test_the_reference_states_the_parameters_and_defaults_of_the_signatures(monkeypatch):
    """The pages are made of the stubs and the docstrings, the signatures are those of the package that runs."""
    monkeypatch.syspath_prepend(DOCS)
    from docstrings import Docstrings

    extensions = griffe.Extensions(Docstrings())
    package = griffe.load("lately", search_paths=[ROOT / "python"], extensions=extensions, allow_inspection=False)
    griffe.load("typing_extensions", allow_inspection=False)
    compared, wrong = 0, []
    for path in SHOWN:
        described = package[path.removeprefix("lately.")]
        while isinstance(described, griffe.Alias):
            described = described.final_target
        for each in documented(described):
            found = pydoc.locate(path if each is described else f"{path}.{each.name}")
            if each.docstring is None or not callable(found):
                continue
            sections = each.docstring.parse("numpy")
            stated = [p for s in sections if s.kind is griffe.DocstringSectionKind.parameters for p in s.value]
            real = inspect.signature(found).parameters if stated else {}
            for parameter in stated:
                compared += 1
                if "As in `" in parameter.description:
                    # The docstring that it names states the default.
                    continue
                name = parameter.name.lstrip("*")
                default = real[name].default if name in real else "no such parameter"
                if not same_default(parameter.default, default):
                    wrong.append(f"{found}: {name} is {parameter.default!r}, by the signature {default!r}")
    assert compared > 150
    assert not wrong, "\n".join(wrong)


def same_default(stated, default):
    """Whether a page states this default, or none because several parameters share an entry or have none."""
    if stated is None or default is inspect.Parameter.empty:
        return stated in (None, "{}", "()")
    return eval(stated.replace("\\", ""), {"lately": lately}) == default


def test_a_wrong_output_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "```python\nprint(1 + 1)\n```\n\n```text\n{}\n```\n"
    assert pages.run(page.format("2"), "right", {}) == 1
    with pytest.raises(AssertionError, match="wrong, line 2"):
        pages.run(page.format("3"), "wrong", {})
    assert pages.run("```console\n$ echo a \\\n    b\na b\n$ echo c\n...\n```\n", "right", {}) == 1
    with pytest.raises(AssertionError, match="echo c"):
        pages.run("```console\n$ echo a\na\n$ echo c\n```\n", "wrong", {})
    with pytest.raises(AssertionError, match="Expected"):
        pages.run("```python\n>>> 1 + 1\n3\n```\n", "wrong", {})


def test_every_erratum_that_is_cited_is_on_the_page():
    page = DOCS / "explanation" / "errata.md"
    erratum_id = re.compile(r"\b(?:APBF|APBBF|GEBF|TLBF|OIE|INF)-\d+\b")
    rows = re.findall(rf"^\| ({erratum_id.pattern}) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(set(rows)) == 52
    cited = {
        (erratum, path.relative_to(ROOT).as_posix())
        for path in tracked(".rs", ".py", ".md", ".ipynb")
        for erratum in erratum_id.findall(path.read_text(encoding="utf-8"))
    }
    assert len(cited) > 100
    assert sorted((erratum, path) for erratum, path in cited if erratum not in rows) == []
