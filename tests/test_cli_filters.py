import pytest

import lately
from lately._families import EVERY, FAMILIES
from lately.cli.report import Counts
from support.command import some_lines, unique


def times(source):
    """Lines as CSV, ten to a second."""
    return b"t,k\n" + b"".join(b"%d,%b" % (i // 10, line) for i, line in enumerate(source))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_filter_passes_on_what_is_new(tmp_path, dedupe, name):
    family = FAMILIES[name]
    # A line comes again after 30 in the mean, and never after 500; for 30 lines a rate of 10^-6 is none.
    lines = some_lines(3000, 30)
    (tmp_path / "a.txt").write_bytes(b"".join(lines))
    (tmp_path / "a.csv").write_bytes(times(lines))
    counted = (tmp_path / "a.txt", "--window", 500)
    timed = (tmp_path / "a.csv", "--window", "50s", "--capacity", 500, "--key", "k", "--time", "t")
    arguments = counted if family.windows in ("any", "insertions") else timed
    ended = dedupe(*arguments, "--fpr", 1e-6, "--filter", name)
    assert ended.status == 0, ended.err
    kept = [line.split(b",")[-1] for line in ended.out.splitlines(keepends=True) if line != b"t,k\n"]
    if family.promise:
        assert kept == unique(lines)
    else:
        assert set(kept) == set(lines)
    report = {line[:11].rstrip(): line[11:] for line in ended.err.splitlines()}
    assert report["filter"].startswith(f"{name}, ")
    exact = family.windows == "insertions" and family.promise
    assert ("may miss" in report["window"]) is not family.promise
    assert ("repeats older than the window are kept" in report["window"]) == exact
    ended = dedupe(*(counted if arguments is timed else timed), "--fpr", 1e-6, "--filter", name)
    assert ended.status == (0 if family.windows == "any" else 2)
    if family.windows != "any":
        windows = "that count records" if family.windows == "insertions" else "of time, such as 10min"
        assert f"--filter {name} is for windows {windows}, got --window" in ended.err


def test_an_unknown_rate(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(times(some_lines(40_000, 10**9)))
    options = (tmp_path / "a.csv", "--key", "k", "--time", "t", "--window", "1000s", "--fpr", 0.01)
    assert "filter     aged-cuckoo, " in dedupe(*options).err
    assert "--window 1000s needs --capacity with --filter timing" in dedupe(*options, "--filter", "timing").err
    for name in ("aged-cuckoo", "time-limited"):
        ended = dedupe(*options, "--filter", name, "--state", tmp_path / name, "--quiet")
        assert (ended.status, ended.err) == (0, "")
        assert dedupe(*options, "--filter", name, "--state", tmp_path / name).err.startswith("lately: error")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_state_of_another_family(tmp_path, dedupe, name):
    (tmp_path / "a.txt").write_bytes(b"t,k\n1,2\n")
    timed = FAMILIES[name].windows in ("time", "unknown rate")
    window = ("--window", "1s", "--capacity", 9) if timed else ("--window", 1000)
    options = (tmp_path / "a.txt", "--format", "csv", *(("--time", "t") if timed else ()))
    options = (*options, "--state", tmp_path / "s", "--fpr", 0.01)
    assert dedupe(*options, *window, "--filter", name).status == 0
    assert f"filter     {name}, " in dedupe(*options).err  # which the state knows
    assert dedupe(*options, "--filter", name).status == 0
    before = (tmp_path / "s").read_bytes()
    other = "swamp" if name == "counting" else "counting"
    ended = dedupe(*options, "--filter", other)
    assert ended.status == 1
    assert f"--filter {other} contradicts the state in {tmp_path}/s, whose filter is {name}" in ended.err
    assert (tmp_path / "s").read_bytes() == before


@pytest.mark.parametrize("name", sorted(EVERY.keys() - FAMILIES.keys()))
def test_a_state_of_a_family_that_is_not_offered_goes_on(tmp_path, dedupe, name):
    (tmp_path / "a.csv").write_bytes(b"t,k\n1,1\n2,2\n")
    window, capacity = (1000, {}) if EVERY[name].windows == "any" else ("1000s", {"capacity": 9})
    made = EVERY[name].make(window, fpr=0.01, **capacity)
    made.insert(["1"], **({"at": 0} if capacity else {}))
    made.save(tmp_path / "s")
    timed = ("--time", "t", "--capacity", 9) if capacity else ()
    ended = dedupe(
        tmp_path / "a.csv", "--key", "k", *timed, "--state", tmp_path / "s", "--window", window, "--fpr", 0.01
    )
    assert ended.out == b"t,k\n2,2\n"
    assert f"filter     {made.family}, " in ended.err
    assert lately.open(tmp_path / "s").inserted == 3


def test_memory_that_grows_is_checked_less_often():
    """Computing the rate reads all cells; the time per record must not grow."""
    f = lately.TimeLimitedBloomFilter("1h", 0.001)
    counts = Counts(f)
    before = f.nbytes, counts.every
    f.insert(range(10**6), at=0)
    assert f.nbytes > 50 * before[0]
    assert counts.every / f.nbytes > 0.2 * before[1] / before[0]
