"""A newcomer runs the README's commands in a fresh clone, in order, and goes on working in it."""

import os
import re
import subprocess
import sys
import tomllib

from support.tree import ROOT, tracked

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


def run(folder, text):
    (folder / "PAGE.md").write_text(text)
    return subprocess.run([sys.executable, RUN, "PAGE.md"], cwd=folder, capture_output=True, text=True)


def test_commands_and_blocks_of_a_page_run_in_its_order(tmp_path):
    done = run(tmp_path, PAGE)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "copy").read_text() == "installed\nfirst block\nsecond command\n"


def test_a_command_that_fails_ends_the_run(tmp_path):
    done = run(tmp_path, PAGE.replace("echo installed", "false; echo installed"))
    assert done.returncode == 1
    assert not (tmp_path / "a file").exists()
    done = run(tmp_path, PAGE.replace("left =", "left ="[::-1]))
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
    assert commands[0].startswith("pip install ")
    assert commands[1] == "pip install uv && uv run pytest\n"
    assert any(command.startswith("lately ") for command in commands[2:])
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
