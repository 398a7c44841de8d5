import argparse
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
from lately.cli.options import parser
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
    assert "aged-cuckoo the default" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["dedupe", "--window", "ten"], "or a span of time, such as 10min or 2d, got 'ten'"),
        (["dedupe", "--filter", "sieve"], "'guarded-epoch-512'"),
        (["dedupe", "--lateness", "10"], "must be a span of time"),
        (["dedupe", "--key", "a,,b"], "names of fields between commas"),
        (["dedupe", "--delimiter", "ab"], "expected one character"),
        (["dedupe", "--delimiter", '"'], "expected one character"),
        (["dedupe", "--window", "1.5"], "expected a number of records, such as 1000000 or 1M"),
        (["dedupe", "--capacity", "1.5"], "expected a whole number, such as 1000000, 1e6 or 1M, got '1.5'"),
        (["dedupe", "--capacity", "inf"], "expected a whole number"),
        (["dedupe", "--seed", "x"], "expected a number, or random, got 'x'"),
        (["dedupe", "--max-record", "many"], "expected a number of bytes"),
        (["dedupe", "--max-record", "0"], "expected a number of bytes"),
        (["dedupe", "--max-record", "9999999999999GiB"], "expected a number of bytes"),
        (["dedupe", "--encoding", "klingon"], "expected the name of an encoding, got 'klingon'"),
        (["dedupe", "--encoding", "utf-16"], "expected an encoding that extends ASCII"),
        (["dedupe", "--no-such-option"], "unrecognized arguments: --no-such-option"),
        (["plan"], "--window"),
        *(
            ([*command, option, name], f"expected the name of a file, got {name!r}")
            for command, options in ((["dedupe"], ["--output", "--dropped", "--state"]), (["merge", "a"], ["-o"]))
            for option in options
            for name in ("x/", "")
        ),
        (["info"], "FILE"),
        *(
            (
                ["dedupe", f"--window={window}"],
                "expected a number of records, such as 1000000 or 1M, or a span of time, such as 10min or 2d, "
                f"got {window!r}",
            )
            for window in ("10,00", "1,0000", "1K", "k", "1.5k.", "1e400", "-")
        ),
    ],
)
def test_wrong_usage_takes_two_lines(capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert len(printed.splitlines()) == 2


def test_the_examples_in_the_help_are_understood(capsys, tmp_path, monkeypatch):
    with pytest.raises(SystemExit):
        main(["dedupe", "--help"])
    commands = re.findall(
        r"^  lately (dedupe .*?)(?: > \S+)?$", capsys.readouterr().out.split("examples:")[1], re.MULTILINE
    )
    assert len(commands) == 3
    monkeypatch.chdir(tmp_path)
    Path("access.log").write_bytes(b"a\n")
    Path("clicks.jsonl.gz").write_bytes(gzip.compress(b'{"ip": 1, "page": {"url": 2}, "ts": 3}\n'))
    Path("monday.csv").write_bytes(b"id\n1\n")
    for command in commands:
        ended = finish(start(*next(csv.reader(io.StringIO(command), delimiter=" "))[1:]), b"host\turl\na\tb\n")
        assert (ended.status, "error" in ended.err) == (0, False), command


def test_the_page_names_every_option():
    page = (Path(__file__).parents[1] / "docs" / "command.md").read_text(encoding="utf-8")
    commands = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    options = [option for action in commands.choices["dedupe"]._actions for option in action.option_strings]
    missing = [option for option in options if f"`{option}" not in page]
    assert missing == ["-h", "--help"]


@pytest.mark.parametrize("thousand", ["1000", "1e3", "1k", "1,000", "1_000", "1000.0", ".001M"])
def test_numbers_are_written_as_people_and_python_write_them(dedupe, tmp_path, thousand):
    (tmp_path / "a.csv").write_bytes(b"t,k\n1,a\n1,b\n1,a\n")
    ended = dedupe(tmp_path / "a.csv", "--window", thousand)
    assert (ended.status, ended.out) == (0, b"t,k\n1,a\n1,b\n")
    assert "window     1,000 records" in ended.err
    options = (tmp_path / "a.csv", "--window", "1min", "--time", "t", "--state", tmp_path / "s")
    assert dedupe(*options, "--capacity", thousand).status == 0
    assert lately.open(tmp_path / "s").capacity == 1000


def test_the_swamp_drops_no_older_repeat(dedupe, tmp_path):
    """Each key comes again 1,001 records later, which a slack would drop."""
    (tmp_path / "a.txt").write_bytes(b"".join(b"%d\n" % (i % 1001) for i in range(20_000)))
    assert dedupe(tmp_path / "a.txt", "--window", 1000, "--filter", "swamp", "--fpr", 1e-9).out.count(b"\n") == 20_000
    assert dedupe(tmp_path / "a.txt", "--window", 1000).out.count(b"\n") < 20_000


@pytest.mark.parametrize("error", ["OSError(5, 'Input/output error')", "ImportError('cannot read\\nfile data')"])
@pytest.mark.parametrize("module", ["argparse", "lately.cli.options", "lately.cli.dedupe", "csv", "lately.cli.report"])
def test_a_disk_that_fails_while_modules_are_imported_is_an_error_of_one_line(module, error, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    code = f"""
import sys
import lately.cli

class Failing:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise {error}

sys.meta_path.insert(0, Failing())
sys.modules.pop({module!r}, None)
sys.exit(lately.cli.main())
"""
    arguments = ["dedupe", tmp_path / "a.csv", "--key", "a", "--window", "9"]
    ended = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("lately: error: ")
    assert ended.stderr.count("\n") == 1, ended.stderr


# Whether a run makes arrays.
RUNS = {
    "dedupe": (False, ("dedupe", "a.csv", "--key", "a", "--window", "9")),
    "dedupe by time": (True, ("dedupe", "a.csv", "--key", "a", "--time", "b", "--window", "9s")),
    "dedupe by milliseconds": (
        True,
        ("dedupe", "a.csv", "--key", "a", "--time", "b", "--time-unit", "ms", "--window", "9s"),
    ),
    "dedupe JSON by time": (True, ("dedupe", "a.jsonl", "--key", "a", "--time", "b", "--window", "9s")),
    "dedupe by time with an output": (True, ("dedupe", "a.csv", "--time", "b", "--window", "9s", "-o", "o.csv")),
    "query": (True, ("query", "f.lately", "1")),
    "query at a time": (True, ("query", "timed.lately", "1", "--at", "5")),
    "info": (False, ("info", "f.lately")),
    "merge": (False, ("merge", "f.lately", "f.lately", "-o", "o.lately")),
    "plan": (True, ("plan", "--window", "9", "--fpr", "0.1")),
}


@pytest.mark.parametrize("run", RUNS)
def test_a_numpy_that_cannot_be_read_is_an_error_of_one_line(run, tmp_path):
    makes_arrays, arguments = RUNS[run]
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "a.jsonl").write_text('{"a": 1, "b": 2}\n')
    lately.AgePartitionedBloomFilter(9, 0.1).save(tmp_path / "f.lately")
    lately.Filter("9s", 0.1, capacity=9).save(tmp_path / "timed.lately")
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise ImportError('cannot read\\nfile data')")
    code = "import sys; from lately.cli import main; sys.exit(main())"
    before = sorted(tmp_path.iterdir())
    ended = subprocess.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True)
    if makes_arrays:
        assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "lately: error: cannot read file data\n")
        assert sorted(tmp_path.iterdir()) == before
    else:
        assert ended.returncode == 0, ended.stderr
