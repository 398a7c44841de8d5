import shlex
import subprocess
import sys

import pyarrow as pa
import pytest

import lately
from lately.cli import main
from lately.cli.state import open_state
from support.parquet import parquet


@pytest.fixture
def command(capfd):
    """Run the command in this process, and give its status and what it wrote."""

    def run(*arguments):
        capfd.readouterr()
        return main([*map(str, arguments)]), *capfd.readouterr()

    return run


def test_plan(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    status, out, _ = command("plan", "--window", 100_000, "--fpr", 0.001, "--slack", 20_000)
    assert status == 0
    assert out == f"{lately.plan(100_000, 0.001, slack=20_000)}\n"
    assert "take: " in out
    assert command("plan", "--window", 1000)[1] == f"{lately.plan(1000, 1e-6)}\n"
    assert command("plan", "--window", "10min", "--capacity", 99)[1] == f"{lately.plan('10min', 1e-6, capacity=99)}\n"
    assert command("plan", "--window", 1000, "--bytes", "64KiB")[1] == f"{lately.plan(1000, nbytes=1 << 16)}\n"
    status, out, err = command("plan", "--window", 1000, "--fpr", 2)
    assert (status, out) == (2, "")
    assert err.startswith("lately: error: fpr")
    assert err.endswith("\n`lately plan --help` describes the options\n")


def test_info(command, tmp_path):
    (tmp_path / "a.csv").write_text("ip,url\n1,2\n3,4\n")
    assert command("dedupe", tmp_path / "a.csv", "--key", "url,ip", "--window", 1000, "--state", tmp_path / "s")[0] == 0
    f = lately.TimingBloomFilter("10min", 0.001, capacity=5000)
    f.save(tmp_path / "timed")
    status, out, _ = command("info", tmp_path / "s", tmp_path / "timed")
    assert status == 0
    first, second = out.split("\n\n")
    assert f"file       {tmp_path}/s\nfilter     aged-cuckoo\nwindow     1,000 keys\nslack      14 keys\n" in first
    assert "\ninserted   2 keys\n" in first
    assert first.endswith("\nkey        url,ip\nformat     csv")
    assert "\nwindow     600.0 s\n" in second
    assert "\ncapacity   5,000 keys\n" in second
    status, _, err = command("info", tmp_path / "a.csv")
    assert (status, f"{tmp_path}/a.csv: " in err) == (1, True)
    status, _, err = command("info", tmp_path / "none")
    assert (status, "No such file" in err) == (1, True)


def test_query(command, tmp_path):
    (tmp_path / "a.txt").write_text("a\nb\n")
    command("dedupe", tmp_path / "a.txt", "--window", 1000, "--state", tmp_path / "s")
    before = (tmp_path / "s").read_bytes()
    assert command("query", tmp_path / "s", "a", "c") == (0, "seen\ta\nnew\tc\n", "")
    ended = subprocess.run(
        [sys.executable, "-m", "lately", "query", tmp_path / "s"], input="b\r\nd", capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (0, "seen\tb\nnew\td\n")
    assert (tmp_path / "s").read_bytes() == before
    status, _, err = command("query", tmp_path / "s", "a", "--at", "5")
    assert (status, "--at is for windows of time" in err) == (1, True)


def test_a_query_passes_over_a_note_of_anything(command, tmp_path):
    lately.Filter(9, 0.001).save(tmp_path / "s")
    for note in ('{"options": []}', '{"options": {"key": 5}}', "[]", "5"):
        (tmp_path / "s.json").write_text(note)
        assert command("query", tmp_path / "s", "a") == (0, "new\ta\n", "")


def test_query_of_several_fields_and_times(command, tmp_path):
    (tmp_path / "a.csv").write_text('ip,url,t\n1,"a,b",0\n3,4,100\n')
    options = ("--key", "url,ip", "--time", "t", "--window", "1min", "--capacity", 9, "--state", tmp_path / "s")
    assert command("dedupe", tmp_path / "a.csv", *options)[0] == 0
    at = ("--at", "1970-01-01T00:01:50")
    assert command("query", tmp_path / "s", "4,3", "3,4", *at)[1] == "seen\t4,3\nnew\t3,4\n"
    status, _, err = command("query", tmp_path / "s", "4", *at)
    assert (status, "a key of" in err) == (1, True)
    status, _, err = command("query", tmp_path / "s", "4,3", "--at", "noon")
    assert (status, "--at 'noon' is neither" in err) == (1, True)


def test_query_of_keys_that_are_no_text(command, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"k": 5, "v": null}\n{"k": "6", "v": true}\n')
    for fields, keys, answers in (
        ("k", ["5", "6", "7", "5.0", "[5]"], "seen seen new seen new"),
        ("k,v", ["5,null", "6,true", "5,true"], "seen seen new"),
    ):
        state = tmp_path / fields
        options = ("--key", fields, "--window", 9, "--state", state, "-o", tmp_path / "o.jsonl")
        assert command("dedupe", tmp_path / "a.jsonl", *options)[0] == 0
        lines = command("query", state, *keys)[1].splitlines()
        assert [line.split("\t")[0] for line in lines] == answers.split()


@pytest.mark.parametrize("present", ["null", None, "a"])
def test_the_text_null_may_be_a_key_of_parquet_or_a_missing_one(command, tmp_path, present):
    parquet(tmp_path / "a.pq", k=pa.array([present], pa.string()), n=[7])
    state = tmp_path / "s"
    options = ("--key", "n,k", "--window", 9, "--state", state, "-o", tmp_path / "o.pq")
    assert command("dedupe", tmp_path / "a.pq", *options)[0] == 0
    found = "new" if present == "a" else "seen"
    assert command("query", state, "7,null", "null,null")[1] == f"{found}\t7,null\nnew\tnull,null\n"


@pytest.mark.parametrize("window", [("--window", "1000"), ("--window", "1h", "--time", "1")])
def test_states_of_two_machines_merge_without_a_capacity(command, tmp_path, window):
    options = ("--no-header", "--format", "csv", "--key", "2", "--seed", 1, "-o", tmp_path / "o", *window)
    for name, keys in (("a", range(500)), ("b", range(400, 900))):
        (tmp_path / f"{name}.csv").write_text("".join(f"{1_700_000_000 + k},{k}\n" for k in keys))
        assert command("dedupe", tmp_path / f"{name}.csv", *options, "--state", tmp_path / name)[0] == 0
    assert command("merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "both") == (0, "", "")
    at = ("--at", 1_700_000_900) if "--time" in window else ()
    found = command("query", *at, tmp_path / "both", *range(901))[1]
    assert found == "".join(f"seen\t{k}\n" for k in range(900)) + "new\t900\n"


def test_a_merged_state_has_the_key_of_its_parts(command, tmp_path):
    options = ("--window", 100, "--seed", 1, "--quiet", "-o", tmp_path / "o.csv")
    for name, key in (("a", "k,n"), ("b", "k,n"), ("c", "n")):
        (tmp_path / f"{name}.csv").write_text(f"n,k\n1,{name}\n")
        run = ("dedupe", tmp_path / f"{name}.csv", *options, "--ignore-case", "--key", key, "--state", tmp_path / name)
        assert command(*run) == (0, "", "")
    assert command("merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "both") == (0, "", "")
    assert command("query", tmp_path / "both", "A,1", "b,1", "a,2")[1] == "seen\tA,1\nseen\tb,1\nnew\ta,2\n"
    (tmp_path / "d.csv").write_text("n,k\n1,B\n2,B\n")
    assert command("dedupe", tmp_path / "d.csv", *options, "--state", tmp_path / "both") == (0, "", "")
    assert (tmp_path / "o.csv").read_text() == "n,k\n2,B\n"
    status, _, err = command("merge", tmp_path / "a", tmp_path / "c", "-o", tmp_path / "no")
    assert (status, f"{tmp_path}/c: its key is ['n'], and that of the states before it ['k', 'n']" in err) == (1, True)
    assert not (tmp_path / "no").exists()


def test_a_merged_filter_has_no_note_of_the_state_it_replaces(command, tmp_path):
    (tmp_path / "a.csv").write_text("n,k\n1,a\n")
    both, text = tmp_path / "both", ("--window", 100, "--seed", 1, "--quiet", "-o", tmp_path / "o")
    assert command("dedupe", tmp_path / "a.csv", "--format", "csv", *text, "--key", "k,n", "--state", both)[0] == 0
    for name in "ab":
        lately.Filter(100, 0.01).save(tmp_path / name)
    assert command("merge", tmp_path / "a", tmp_path / "b", "-o", both) == (0, "", "")
    assert command("query", both, "a") == (0, "new\ta\n", "")
    # The note goes with the filter, or neither does.
    (tmp_path / "both.json").unlink()
    (tmp_path / "both.json").mkdir()
    lately.Filter(100, 0.01, seed=5).save(tmp_path / "a")
    assert command("merge", tmp_path / "a", "-o", both)[0] == 1
    assert lately.open(both).seed == 0


def test_merge(command, tmp_path):
    made = [lately.AgePartitionedBloomFilter("10min", 0.001, capacity=5000) for _ in "ab"]
    for f, key in zip(made, "ab", strict=True):
        f.add(key, at=0)
        f.save(tmp_path / key)
    assert command("merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "both") == (0, "", "")
    assert command("query", tmp_path / "both", "a", "b", "c", "--at", 1)[1] == "seen\ta\nseen\tb\nnew\tc\n"
    lately.AgePartitionedBloomFilter("11min", 0.001, capacity=5000).save(tmp_path / "c")
    status, _, err = command("merge", tmp_path / "a", tmp_path / "c", "-o", tmp_path / "no")
    assert status == 1
    assert err.startswith(f"lately: error: {tmp_path}/c: ")
    assert not (tmp_path / "no").exists()
    for name in "de":
        lately.TimeLimitedBloomFilter("10min", 0.001).save(tmp_path / name)
    status, _, err = command("merge", tmp_path / "d", tmp_path / "e", "-o", tmp_path / "no")
    assert (status, "make both with --capacity" in err) == (1, True)
    status, _, err = command("merge", tmp_path / "a", "-o", tmp_path / "no" / "no")
    assert (status, f"--output {tmp_path}/no/no: the folder {tmp_path}/no does not exist" in err) == (1, True)


def test_a_merge_replaces_no_state_that_a_run_is_using(command, tmp_path):
    lately.Filter(9, 0.01).save(tmp_path / "a")
    with open_state(str(tmp_path / "s")):
        status, _, err = command("merge", tmp_path / "a", "-o", tmp_path / "s")
    assert (status, f"--output {tmp_path}/s is in use by another run" in err) == (1, True)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("name", ["dedupe", "plan", "info", "query", "merge"])
def test_every_command_has_help(capsys, name):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"usage: lately {name}" in capsys.readouterr().out


def test_a_reader_that_has_gone():
    command = f"{shlex.quote(sys.executable)} -m lately plan --window 1000 | true; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert ended.returncode in (0, 141)
    assert ended.stderr == ""


@pytest.mark.parametrize(
    "request_", [["--window", "1e6"], ["--window", "10min"], ["--window", "1h", "--capacity", "1e9"]]
)
def test_a_plan_fits_a_terminal_of_80_columns(command, monkeypatch, request_):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = command("plan", *request_)
    assert (status, max(map(len, out.splitlines())) <= 80) == (0, True), out
    monkeypatch.setenv("COLUMNS", "300")
    wide = command("plan", *request_)[1]
    assert wide.count("parameters") == 1
    assert all(line.split()[0] in wide for line in out.splitlines())
