"""The front page: its code runs after its commands, its statements hold, and its speeds are measured."""

import re
import sys
import tomllib
from pathlib import Path

import lately
from support import pages

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [block.code.strip() for block in pages.blocks(TEXT) if block.kind == "bash"]


def test_code(tmp_path, monkeypatch):
    monkeypatch.chdir(pages.folder(tmp_path, ROOT))
    assert pages.run(TEXT, "README.md", {}) == 4
    assert len((tmp_path / "new.tsv").read_bytes().splitlines()) > 20_000


def test_the_first_command_installs_what_the_blocks_import():
    install, everything = COMMANDS[0], pages.blocks(TEXT)
    extras = re.fullmatch(r"pip install '\.\[([\w,]+)\]'", install)[1].split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = {"lately", *map(name_of, project["dependencies"])}
    for extra in extras:
        installed |= {name_of(requirement) for requirement in project["optional-dependencies"][extra]}
    for block in everything:
        if block.kind == "python":
            imported = set(re.findall(r"^import (\w+)", block.code, re.MULTILINE))
            assert imported <= installed | set(sys.stdlib_module_names), block.line
        if block.kind == "console":
            assert all(command.split()[0] in project["scripts"] for command, _ in pages.commands(block.code))


def name_of(requirement):
    return re.match(r"[\w-]+", requirement)[0]


def test_a_heartbeat_passes_as_often_as_the_page_states():
    """Every 9 minutes, through a window of 10, for a day."""
    beats = [1e9 + 540 * i for i in range(160)]
    for refresh, passed in ((True, 1), (False, 80)):
        f = lately.Filter("10min", 1e-6, capacity=100)
        assert [f.seen("up", at=at, refresh=refresh) for at in beats].count(False) == passed
    f = lately.Filter("10min", 1e-6, capacity=100)
    assert [f.seen("a", at=1e9 + s) for s in (0, 600)] == [False, True], "exactly ten minutes is a repeat"


def test_the_slack_of_the_picture_and_of_the_default_are_those_stated():
    shown, default = (lately.Filter(10_000, 0.01, prefer=prefer).slack for prefer in ("speed", None))
    assert lately.AgePartitionedBloomFilter(10_000, 0.01, layout="line").slack == shown, "as docs/forgetting.py draws"
    for page in ("README.md", "docs/index.md", "docs/explanation/window-and-slack.md"):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        assert re.search(rf"slack (is|of) {shown:,} keys", text), page
        assert re.search(rf"default has (a slack of )?{default}\b", text), page


def test_no_message_names_a_package_of_ours_that_is_on_no_index():
    texts = [*(ROOT / "python").rglob("*.py"), ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert not [path for path in texts if re.search(r"pip install '?lately", path.read_text(encoding="utf-8"))]


def test_speeds_are_those_of_the_benchmark(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from speed import plot

    report = (ROOT / "benchmarks" / "results" / "speed.md").read_text(encoding="utf-8")
    table = plot.front(report)
    assert table in TEXT
    assert table.count("\n") == len(plot.FRONT) + 1
    for row in table.splitlines()[2:]:
        for figure in re.findall(r"\d[\d.,]*\d%?", row.partition("|")[2].partition("|")[2]):
            assert f" {figure} |" in report
    for name in [name for name in sys.modules if name.partition(".")[0] == "speed"]:
        monkeypatch.delitem(sys.modules, name)


def test_is_two_screens():
    """Of some sixty lines each."""
    shown = [line for line in TEXT.splitlines() if line.strip()]
    assert len(shown) < 130
