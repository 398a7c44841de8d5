"""MkDocs hooks: pages from outside `docs/`, links and inserted texts.

- The version is at the foot of each page.
- Pages that lie outside `docs/` are part of the site, and notebooks as they are stored.
- The pictures of pages are drawn.
- Links that hold in the repository hold in the site.
- ``{{ text of FILE }}`` stands for the documentation of a Rust module, ``{{ help of COMMAND }}`` for a help text, and
  ``{{ parameters of CLASS }}`` for the table of what `from_parameters` takes: each has one source.
"""

import os
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The line of the theme's makers about a later MkDocs, on every build.
os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")

from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

from lately import _core

ROOT = Path(__file__).parents[1]
# Pages of the repository that are part of the site, at the same paths.
OUTSIDE = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "SECURITY.md",
    "benchmarks/**/*.md",
    "examples/README.md",
]
# How pandas begins a table; the theme gives its looks to those without a class.
FRAME = re.compile(r'(<style scoped>.*?</style>\s*)?<table border="1" class="dataframe">', re.DOTALL)
INSERTED = re.compile(r"^\{\{ (help|parameters|text) of (\S+) \}\}$", re.MULTILINE)
LINK = re.compile(r"(\]\()([^)#\s]+)(?=[)#])")


def on_config(config: Any) -> Any:
    """Write the version at the foot of each page."""
    config.copyright = f"lately {_core.__version__}"
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add what lies outside."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        page, pictures = MarkdownExporter().from_filename(path, {"output_files_dir": path.stem})
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=FRAME.sub("<table>", page)))
        for name, content in pictures["outputs"].items():
            files.append(File.generated(config, f"notebooks/{Path(name).as_posix()}", content=content))
    for page, path in drawn():
        files.append(File.generated(config, page, abs_src_path=str(path)))
    return files


def drawn() -> Iterator[tuple[str, Path]]:
    """Draw the pictures, and yield where in the site each lies, and its file."""
    sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "benchmarks")]
    import how_probable
    import which_filter

    from speed import plot as speed

    which_filter.FIGURES.mkdir(parents=True, exist_ok=True)
    which_filter.draw(which_filter.FIGURES)
    how_probable.draw(which_filter.FIGURES)
    report = ROOT / "benchmarks" / "results" / "speed.md"
    speed.draw(report.read_text(encoding="utf-8"), which_filter.FIGURES / "speed.svg")
    yield "benchmarks/results/speed.svg", which_filter.FIGURES / "speed.svg"
    for name in ("decay", "by-rate", "by-slack", "how-probable"):
        yield f"{name}.svg", which_filter.FIGURES / f"{name}.svg"


def on_page_markdown(markdown: str, *, page: Any, files: Files, **_: Any) -> str:
    """Turn links that hold in the repository into links that hold in the site."""
    source = page.file.src_uri
    # In the repository, pages of the site's own lie in `docs/`; those from outside lie where they do in the site.
    home = posixpath.dirname(source if page.file.generated_by else f"docs/{source}")

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(home, found[2])).removeprefix("docs/")
        if target.endswith(".ipynb"):
            target = f"{target.removesuffix('.ipynb')}.md"
        if ":" in found[2] or target not in files.src_uris:
            return found[0]
        return found[1] + posixpath.relpath(target, posixpath.dirname(source) or ".")

    return LINK.sub(link, INSERTED.sub(inserted, markdown))


def inserted(found: re.Match[str]) -> str:
    """Give what stands for a line in braces."""
    if found[1] == "help":
        command = [sys.executable, "-m", "lately", found[2], "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "88"})
        return f"```text\n{done.stdout}```"
    if found[1] == "parameters":
        rows = [f"| `{name}` | {meaning} |" for name, meaning in _core.meanings(found[2])]
        return "\n".join(["| parameter | meaning |", "|---|---|", *rows])
    lines = (ROOT / found[2]).read_text(encoding="utf-8").splitlines()
    text = "\n".join(line[3:].removeprefix(" ") for line in lines if line.startswith("//!"))
    return re.sub(r"\[(`[^`]+`|[^\]]+)\]\(crate::[^)]*\)", r"\1", text)
