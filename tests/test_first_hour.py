"""A newcomer runs the README's commands in a fresh clone, in order, and goes on working in it."""

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
