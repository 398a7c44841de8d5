import pyarrow.parquet as pq
import pytest

from support.command import SURE
from support.parquet import parquet

EVENTS = [(0, "a"), (5, "b"), (9, "a"), (18, "a"), (18, "c"), (60, "b"), (100, "a")]
KEPT = [0, 1, 4, 5, 6]  # of EVENTS, in a window of 10 s: two of "a" were seen 9 s before
BY_DAY = ("--time-format", "%H:%M:%S %d.%m.%Y")


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (("--time-unit", "ms"), lambda second: 1_700_000_000_000.0 + 1000 * second),
        (("--time-unit", "us"), lambda second: 1_700_000_000_000_000 + 10**6 * second),
        (BY_DAY, lambda second: f"01:{second // 60:02}:{second % 60:02} 31.12.2020"),
        (("--time-format", "%Y%m%d%H%M%S"), lambda second: int(f"2020123101{second // 60:02}{second % 60:02}")),
    ],
)
def test_units_and_formats_of_times_in_parquet(tmp_path, dedupe, options, written):
    """Files of other formats are generated in `test_cli_generated.py`."""
    path, target = tmp_path / "a.parquet", tmp_path / "o.parquet"
    table = parquet(path, t=[written(second) for second, _ in EVENTS], k=[key for _, key in EVENTS])
    ended = dedupe(path, "--key", "k", "--time", "t", "--window", "10s", *options, "-o", target)
    assert (ended.status, "1971" in ended.err) == (0, False)
    assert pq.read_table(target).equals(table.take(KEPT))


def test_a_time_that_does_not_fit_its_format_is_an_error(tmp_path, dedupe):
    (tmp_path / "a.csv").write_text("t,k\nnoon,a\n")
    ended = dedupe(tmp_path / "a.csv", "--key", "k", "--time", "t", "--window", "10s", *BY_DAY)
    assert "the time t time data 'noon' does not match" in ended.err


@pytest.mark.parametrize(
    ("times", "options", "warned"),
    [
        ((20200131, 20200201), (), True),
        ((20200131, 20200201), ("--time-format", "%Y%m%d"), False),
        ((604_799_950, 604_800_000), (), True),
        ((604_799_950, 604_800_000), ("--time-unit", "ms"), False),
        ((604_799_950, 604_800_000), ("--time-unit", "s"), False),
        ((1_699_999_950, 1_700_000_000), (), False),
        ((799_999_950, 800_000_000), (), False),
    ],
)
def test_dates_and_times_from_a_start_are_not_taken_for_unix_seconds_in_silence(
    tmp_path, dedupe, times, options, warned
):
    (tmp_path / "a.csv").write_text("t,k\n{},a\n{},b\n".format(*times))
    ended = dedupe(tmp_path / "a.csv", "--key", "k", "--time", "t", "--window", "1h", *options)
    assert ended.status == 0
    assert ("warning: all times are before 1990" in ended.err) == ("warning" in ended.err) == warned


@pytest.mark.parametrize("fraction", ["", ".1"])
def test_late_records(tmp_path, dedupe, fraction):
    # Half as many records again as are in a batch, and a late one among the last.
    rows = [f"{1_700_000_000 + i // 100}{fraction},{i}\n" for i in range(100_000)]
    rows[90_000] = f"{1_700_000_000 + 899 - 10}{fraction},late\n"
    rows[95_000] = f"{1_700_000_000 + 949 - 25}{fraction},later\n"
    (tmp_path / "a.csv").write_text("t,k\n" + "".join(rows))
    options = ("--key", "k", "--time", "t", "--window", "1min", "--capacity", 6000, *SURE)
    ended = dedupe(tmp_path / "a.csv", *options, "--lateness", "9.99s", "--output", tmp_path / "o", "--skip-bad")
    assert ended.status == 1
    assert f"{tmp_path}/a.csv, line 90002: the time 2023-11-14T22:28:09.{fraction[1:] or '0'}" in ended.err
    assert "steps back by 10 s from the latest before it, more than the --lateness of 9.99 s" in ended.err
    assert "raise --lateness to the furthest step back, 25s\n" in ended.err
    assert not (tmp_path / "o").exists()
    ended = dedupe(tmp_path / "a.csv", *options, "--lateness", "25s")
    assert ended.out.decode() == "t,k\n" + "".join(rows)


def test_options_that_do_not_fit_are_errors(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"t,k\n1,2\n")
    for options, message in [
        ([], "--window is needed"),
        (
            ["--window", "10s", "--time", "t", "--filter", "age-partitioned"],
            "--window 10s needs --capacity with --filter age-partitioned: the number of records within 10s",
        ),
        (["--window", "10s", "--capacity", 9], "needs --time"),
        (["--window", "10", "--time", "t"], "--time is for windows of time"),
        (["--window", "10", "--capacity", 9], "--capacity is for windows of time"),
        (["--window", "10", "--lateness", "1s"], "--lateness is for windows of time"),
        (["--window", "10", "--max-ahead", "1s"], "--max-ahead is for windows of time"),
        (["--window", "10", "--time-unit", "ms"], "--time-unit is for the times of records, which --time names"),
        (["--window", "10", "--format", "text", "--delimiter", ";"], "--delimiter is for CSV and TSV, but the records"),
        (["--window", "10", "--format", "jsonl", "--no-header"], "--no-header is for CSV and TSV, but the records"),
        (["--window", "10", "--format", "parquet", "--no-quotes"], "--quotes is for CSV and TSV, but the records"),
        (["--window", "10", "--format", "parquet", "--encoding", "latin-1", "-o", "o"], "--encoding is for text"),
        (["--window", "10s", "--time", "t", "--filter", "swamp"], "--filter swamp is for windows that count records"),
        (["--window", "0"], "window"),
        (["--window", "9", "--fpr", "2"], "fpr"),
        (["--window", "9", "--seed", "-1"], "seed"),
        (["--window", "9999999999999999", "--filter", "age-partitioned", "--fpr", "0.001"], "memory"),
    ]:
        ended = dedupe(tmp_path / "a.csv", *options)
        assert ended.status == (1 if message == "memory" else 2), options
        assert message in ended.err, options
        assert ended.err.startswith("lately: error: ")
        assert ended.err.splitlines()[1:] == ["`lately dedupe --help` describes the options"] * (ended.status - 1)
        assert ended.out == b""
