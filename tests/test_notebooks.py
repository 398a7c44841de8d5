"""Every notebook runs from top to bottom, its own assertions included, and prints what is stored."""

import re
import shutil
from pathlib import Path

import nbformat
import pytest

from support.forked import Forked

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
RUN = "import run_notebook, sys; run_notebook.main(*sys.argv[1:])"


def test_notebooks_exist():
    assert NOTEBOOKS


NUMBER = re.compile(r"\d[\d.,e+-]*")


def outputs(executed):
    """Return kind, stream and text of each output of each cell, without the numbers of a cell that measures times."""
    found = []
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            if "perf_counter" in cell.source:
                text = re.sub(r"[\s-]+", " ", NUMBER.sub("#", text)).strip()
            found.append((cell.execution_count, output.output_type, output.get("name"), text))
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_prints_what_is_stored(path, tmp_path):
    """In a copy, so that what a notebook may write stays out of the sources; a failed cell raises.

    A warning is an output too: the stored notebook shows what a reader gets.
    """
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    # The papers' notebook uses their code.
    for used in ("benchmarks", "tests"):
        (tmp_path / used).symlink_to(ROOT / used)
    (tmp_path / "notebooks").mkdir()
    process = Forked(RUN, path, tmp_path / "notebooks", imports=("run_notebook",))
    out, err = process.communicate()
    assert process.returncode == 0, err.decode()
    assert outputs(nbformat.reads(out.decode(), as_version=4)) == outputs(nbformat.read(path, as_version=4))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_stored_as_run(path):
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert path.stat().st_size < 250_000
