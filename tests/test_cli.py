import csv
import gzip
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lately
from lately._families import FAMILIES
from lately.cli import main
from support.command import finish, start


def test_version_and_help(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"lately {lately.__version__}\n"
    with pytest.raises(SystemExit) as ended:
        main(["dedupe", "--help"])
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "default: 1e-06" in shown
    assert all(f" {name} " in shown for name in FAMILIES)
    assert "aged-quotient the default;" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["dedupe", "--window", "ten"], "must be a span of time such as '10min'"),
        (["dedupe", "--filter", "sieve"], "'guarded-epoch-512'"),
        (["dedupe", "--lateness", "10"], "must be a span of time"),
        (["dedupe", "--key", "a,,b"], "names of fields between commas"),
        (["dedupe", "--delimiter", "ab"], "one character is needed"),
        (["dedupe", "--delimiter", '"'], "one character is needed"),
        (["dedupe", "--window", "1.5"], "must be a span of time such as '10min'"),
        (["dedupe", "--capacity", "1.5"], "a whole number is needed, such as 1000000 or 1e6; got '1.5'"),
        (["dedupe", "--capacity", "inf"], "a whole number is needed"),
        (["dedupe", "--seed", "x"], "a number is needed, or random; got 'x'"),
        (["dedupe", "--max-record", "many"], "a number of bytes is needed"),
        (["dedupe", "--max-record", "0"], "a number of bytes is needed"),
        (["dedupe", "--encoding", "klingon"], "there is no encoding 'klingon'"),
        (["dedupe", "--encoding", "utf-16"], "utf-16 is no extension of ASCII"),
    ],
)
def test_wrong_usage(capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_the_examples_in_the_help_are_understood(capsys, tmp_path, monkeypatch):
    with pytest.raises(SystemExit):
        main(["dedupe", "--help"])
    commands = re.findall(
        r"lately (dedupe .*?)(?: > \S+)?$", capsys.readouterr().out.split("examples:")[1], re.MULTILINE
    )
    assert len(commands) == 5
    commands = [command for command in commands if "--follow" not in command]  # it would not end
    monkeypatch.chdir(tmp_path)
    Path("access.log").write_bytes(b"a\n")
    Path("clicks.jsonl.gz").write_bytes(gzip.compress(b'{"ip": 1, "page": {"url": 2}, "ts": 3}\n'))
    Path("monday.csv").write_bytes(b"id\n1\n")
    for command in commands:
        ended = finish(start(*next(csv.reader(io.StringIO(command), delimiter=" "))[1:]), b"host\turl\na\tb\n")
        assert (ended.status, "error" in ended.err) == (0, False), command


def test_numbers_as_python_writes_them(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"t,k\n1,a\n")
    for window in ("1000", "1e3", "1_000", "1000.0"):
        assert "window     1,000 records" in dedupe(tmp_path / "a.csv", "--window", window).err
    options = (tmp_path / "a.csv", "--window", "1min", "--time", "t", "--state", tmp_path / "s")
    assert dedupe(*options, "--capacity", "1e3").status == 0
    assert lately.open(tmp_path / "s").capacity == 1000


def test_a_shell_completes_options_and_files(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--completion", "bash"])
    assert ended.value.code == 0
    (tmp_path / "lately.bash").write_text(capsys.readouterr().out)
    (tmp_path / "seen.1").touch()
    script = 'source ./lately.bash; COMP_WORDS=(lately "$@"); COMP_CWORD=$#; _shtab_lately; echo ${COMPREPLY[@]}'
    for words, completed in [
        (["dedupe", "--fol"], "--follow"),
        (["dedupe", "--filter", "swa"], "swamp"),
        (["dedupe", "--state", "see"], "seen.1"),
        (["in"], "info"),
    ]:
        command = ["bash", "-c", script, "-", *words]
        shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert shown.stdout.split() == [completed], shown


def test_completion_needs_the_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit) as ended:
        main(["--completion", "zsh"])
    assert ended.value.code == 2
    assert "needs shtab: pip install shtab" in capsys.readouterr().err
