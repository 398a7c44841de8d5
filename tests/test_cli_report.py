import gzip
import os
import pty
import random
import re
import termios
from pathlib import Path

import pytest

import lately
from support.command import some_lines, start


def test_report(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\nb\na\n\xff\na\nc\n")
    options = (tmp_path / "a.txt", "--window", 200_000, "--skip-bad", "--encoding", "utf-8", "--fpr", 0.001)
    made = lately.Filter(200_000, 0.001)
    lines = dedupe(*options).err.splitlines()
    assert lines[:3] == ["read       6 records", "kept       3", "dropped    2 as repeats"]
    assert re.fullmatch(r"by chance  \d\S* of them are new, in expectation", lines[3])
    last = f"{200_000 + made.slack:,} records"
    assert lines[4:6] == [
        "malformed  1, skipped",
        f"window     200,000 records, slack {made.slack:,}: a repeat may be dropped up to {last} after its key",
    ]
    assert lines[6].startswith(
        f"filter     {made.family}, {made.nbytes:,} bytes; rate of mistakes: planned for {made.fpr:.3g}, "
    )
    assert dedupe(*options, "--quiet").err == ""
    lines = dedupe(tmp_path / "a.txt", "--window", 100_000, "--filter", "swamp").err.splitlines()
    kept = "repeats older than the window are kept (except by chance, at the rate below)"
    assert lines[5] == f"window     100,000 records, slack 0: {kept}"
    assert lines[6].startswith("filter     swamp, ")


@pytest.mark.parametrize("window", [7, 1000, 20_000])
def test_expected_mistakes_are_those_made(tmp_path, dedupe, window):
    """All records are new, so all that are dropped are mistakes."""
    total = 120_000
    (tmp_path / "a.txt").write_text("".join(f"{i}\n" for i in range(total)))
    ended = dedupe(tmp_path / "a.txt", "--window", window, "--fpr", 0.05, "--filter", "age-partitioned-512")
    dropped = total - ended.out.count(b"\n")
    expected = float(re.search(r"by chance  (\S+) of them", ended.err)[1])
    # As many independent draws of rate 0.05 or less: 5 standard deviations, and 1 % for the rounding of the report
    # and for taking the rate at a quarter of a generation's records.
    assert dropped > 1000
    assert abs(dropped - expected) < 5 * dropped**0.5 + 0.01 * dropped


def test_many_mistakes_are_warned_of(tmp_path, dedupe):
    (tmp_path / "a.txt").write_text("".join(f"{i % 9900}\n" for i in range(10_000)))
    ended = dedupe(tmp_path / "a.txt", "--window", 10_000, "--fpr", 0.01)
    assert re.search(r"warning: about \S+ of the \d+ dropped records are new: a lower --fpr", ended.err)
    assert "warning" not in dedupe(tmp_path / "a.txt", "--window", 10_000).err


def test_the_last_records_count_for_mistakes_too(tmp_path, dedupe):
    (tmp_path / "a.txt").write_text("".join(f"{i}\n" for i in range(100_000)))  # under a quarter of a generation
    ended = dedupe(tmp_path / "a.txt", "--window", 1_000_000, "--fpr", 0.5)
    assert float(re.search(r"by chance  (\S+) of them", ended.err)[1]) > 0


def test_expected_mistakes_in_a_window_of_time(tmp_path, dedupe):
    """Twice as many records as planned for part of the time: more mistakes, and the report states it."""
    seconds = [second for second in range(2000) for _ in range(20 if 800 <= second < 1000 else 10)]
    (tmp_path / "a.csv").write_text("t,k\n" + "".join(f"{second},{i}\n" for i, second in enumerate(seconds)))
    options = ("--time", "t", "--key", "k", "--window", "100s", "--capacity", 1000, "--fpr", 0.03)
    options = (*options, "--filter", "age-partitioned-512")
    ended = dedupe(tmp_path / "a.csv", *options)
    dropped = len(seconds) + 1 - ended.out.count(b"\n")
    expected = float(re.search(r"by chance  (\S+) of them", ended.err)[1])
    assert dropped > 1000
    assert abs(dropped - expected) < 5 * dropped**0.5 + 0.05 * dropped
    assert float(re.search(r"highest here (\S+)", ended.err)[1]) > 0.1


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_printed_to_a_terminal_alone(tmp_path, quiet):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"".join(some_lines(200_000, 200_000))))
    terminal, child = pty.openpty()
    termios.tcsetwinsize(child, (24, 80))
    with Path(os.devnull).open("wb") as nowhere:
        process = start(tmp_path / "a.txt.gz", "--window", 9, *["--quiet"] * quiet, stdout=nowhere, stderr=child)
    os.close(child)
    shown = b""
    try:
        while chunk := os.read(terminal, 1 << 16):
            shown += chunk
    except OSError:  # Linux reports so that the terminal's other end is closed
        pass
    os.close(terminal)
    process.stdin.close()
    assert process.wait() == 0
    assert (b"%|" in shown) is not quiet
    assert (b"read       200,000" in shown) is not quiet


@pytest.mark.parametrize("window", [1000, 20_000])
def test_a_run_with_a_seed_gives_the_same_output_and_report_each_time(tmp_path, dedupe, window):
    rng = random.Random(1)
    lines = "".join(f"{rng.randrange(2 * window)}\n" for _ in range(6 * window))
    (tmp_path / "a.txt").write_text(lines)
    options = (tmp_path / "a.txt", "--window", window, "--fpr", 0.01, "--filter", "age-partitioned-line")
    runs = {(ended.out, ended.err) for ended in (dedupe(*options, "--seed", 5) for _ in range(3))}
    assert len(runs) == 1
    assert len({dedupe(*options).out for _ in range(3)}) > 1, "without it the seed is drawn"


def test_a_lateness_that_makes_the_filter_large_is_warned_of(tmp_path, dedupe):
    (tmp_path / "a.csv").write_text("t,k\n1700000000,a\n1700000001,b\n")
    options = ("--key", "k", "--time", "t", "--window", "1s", "--capacity", 1000)
    assert "because --lateness is" in dedupe(tmp_path / "a.csv", *options, "--lateness", "1h").err
    assert "because --lateness is" not in dedupe(tmp_path / "a.csv", *options, "--lateness", "1s").err
