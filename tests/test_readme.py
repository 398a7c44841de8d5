"""The front page: its commands and its code run in a fresh clone, its statements hold, its speeds are measured."""

import os
import re
import subprocess
import sys
import tomllib

import lately
from support import pages
from support.tree import ROOT, tracked

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
INSTALL = re.compile(r"^\$ pip install '\.\[([\w,]+)\]' && (?=lately dedupe )", re.MULTILINE)

RUN = ROOT / ".ci" / "readme.py"
PAGE = """# A page

```bash
echo installed > "a file"
```

Text between.

```python
left = open("a file").read()
```

```text
what a block prints is not run
```

```python
open("a file", "w").write(left + "first block\\n")
```

```console
$ cat "a file" > copy
what a command prints is not run
$ echo second command >> copy
```
"""


def test_code(tmp_path, monkeypatch):
    monkeypatch.chdir(pages.folder(tmp_path, ROOT))
    assert pages.run(INSTALL.sub("$ ", TEXT), "README.md", {}) == 4
    assert len((tmp_path / "new.tsv").read_bytes().splitlines()) > 20_000


def test_the_first_command_installs_what_the_blocks_import():
    everything = list(pages.blocks(TEXT))
    assert everything[0].kind == "console"
    extras = INSTALL.match(everything[0].code)[1].split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = {"lately", *map(name_of, project["dependencies"])}
    for extra in extras:
        installed |= {name_of(requirement) for requirement in project["optional-dependencies"][extra]}
    for block in everything:
        if block.kind == "python":
            imported = set(re.findall(r"^import (\w+)", block.code, re.MULTILINE))
            assert imported <= installed | set(sys.stdlib_module_names), block.line
    assert "lately" in project["scripts"]


def test_the_pages_name_the_extras_that_there_are():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))]
    named = {name for text in texts for extras in re.findall(r"'\.\[([\w,]+)\]'", text) for name in extras.split(",")}
    assert named == set(project["optional-dependencies"])


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


def test_the_slack_of_the_picture_is_that_of_the_default():
    for page in ("README.md", "docs/index.md", "docs/explanation/window-and-slack.md"):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        assert f"slack is {lately.Filter(10_000, 0.01).slack:,} keys" in text.replace("slack of", "slack is"), page
    assert "lately.Filter(10_000, FPR)" in (ROOT / "docs" / "forgetting.py").read_text(encoding="utf-8")


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


def run_page(folder, text):
    (folder / "PAGE.md").write_text(text)
    return subprocess.run([sys.executable, RUN, "PAGE.md"], cwd=folder, capture_output=True, text=True)


def test_commands_and_blocks_of_a_page_run_in_its_order(tmp_path):
    done = run_page(tmp_path, PAGE)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "copy").read_text() == "installed\nfirst block\nsecond command\n"


def test_a_command_that_fails_ends_the_run(tmp_path):
    done = run_page(tmp_path, PAGE.replace("echo installed", "false; echo installed"))
    assert done.returncode == 1
    assert not (tmp_path / "a file").exists()
    done = run_page(tmp_path, PAGE.replace("left =", "left ="[::-1]))
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert not (tmp_path / "copy").exists()


def test_the_check_of_each_commit_runs_the_readme():
    assert ".ci/readme.py README.md" in (ROOT / ".ci" / "run").read_text()
    sys.path.insert(0, str(RUN.parent))
    try:
        import readme
    finally:
        sys.path.remove(str(RUN.parent))
    programs = readme.steps((ROOT / "README.md").read_text(encoding="utf-8"))
    commands = [code for program, code in programs if program == "bash"]
    assert INSTALL.match(f"$ {commands[0]}")
    assert commands[1:] == ["pip install uv && uv run pytest\n"]
    assert "python" in dict(programs)


def test_a_file_that_a_command_leaves_in_the_clone_is_not_checked(tmp_path):
    """A linter read the output of the README's command once, and found words misspelled."""
    clone = tmp_path / "a clone"
    clone.mkdir()
    for command in (["init", "--quiet"], ["add", "kept.md"]):
        (clone / "kept.md").write_text("A page.\n")
        subprocess.run(["git", *command], cwd=clone, check=True)
    (clone / "new.tsv").write_text("t" + "be\n")
    assert tracked(root=clone) == [clone / "kept.md"]


def test_nothing_that_a_build_writes_makes_the_next_command_build_again():
    """`uv run` compares the times of these files with those of the last build."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["uv"]
    files = tracked()
    for key in settings["cache-keys"]:
        if "file" in key:
            listed = [path for path in ROOT.glob(key["file"]) if "target" not in path.relative_to(ROOT).parts]
            assert listed, key
            assert {*listed} <= {*files}, f"{key} names a file that git does not track"


def test_an_index_shows_urls_and_links_that_lead_to_the_repository(tmp_path):
    for name in ("pyproject.toml", "README.md"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    github = {"GITHUB_SERVER_URL": "https://git.example", "GITHUB_REPOSITORY": "a/lately", "GITHUB_REF_NAME": "v0.1.0"}
    subprocess.run([sys.executable, ROOT / ".ci" / "addresses.py"], cwd=tmp_path, env=os.environ | github, check=True)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Source"] == "https://git.example/a/lately"
    assert project["scripts"] == {"lately": "lately.cli:main"}
    links = re.findall(r"\]\(([^)]+)\)", (tmp_path / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 10
    for link in links:
        assert link.startswith("https://")
        page = re.fullmatch(r"https://git\.example/a/lately/(?:blob|raw)/v0\.1\.0/([^#]+)(#.*)?", link)
        assert page is None or (ROOT / page[1]).exists(), link


def test_the_classifiers_name_what_the_workflow_tests():
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    for version in {*re.findall(r'"(3\.\d+)"', workflow)}:
        assert f"Programming Language :: Python :: {version}" in classifiers
    for system in ("MacOS", "Microsoft :: Windows", "POSIX :: Linux"):
        assert f"Operating System :: {system}" in classifiers
