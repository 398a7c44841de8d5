from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lately
from lately._core import read_moment as moment
from lately._core import read_moments as moments
from lately._core import read_span as span
from support.versions import STRINGS

SECOND = 10**9


@pytest.mark.parametrize(
    ("value", "nanoseconds"),
    [
        ("10min", 600 * SECOND),
        ("10m", 600 * SECOND),
        ("1h30min", 5400 * SECOND),
        (" 1 h 30 min ", 5400 * SECOND),
        ("500ms", SECOND // 2),
        ("1.5s", 3 * SECOND // 2),
        ("0.1s", SECOND // 10),  # exact, as 0.1 in binary is not
        ("2d", 2 * 86_400 * SECOND),
        ("1w", 7 * 86_400 * SECOND),
        ("3us", 3000),
        ("3\u00b5s", 3000),
        ("3\u03bcs", 3000),
        ("7ns", 7),
        ("10 minutes", 600 * SECOND),
        ("1 hour", 3600 * SECOND),
        ("2 weeks 3 days", 17 * 86_400 * SECOND),
        ("1minute30seconds", 90 * SECOND),
        ("1.5 milliseconds", 1_500_000),
        ("0s", 0),
        (timedelta(minutes=1, microseconds=1), 60 * SECOND + 1000),
        (np.timedelta64(3, "h"), 3 * 3600 * SECOND),
        (np.timedelta64(1, "W"), 7 * 86_400 * SECOND),
        (np.array([2], "timedelta64[25s]")[0], 50 * SECOND),
        (pd.Timedelta("1min7ns"), 60 * SECOND + 7),
    ],
)
def test_span(value, nanoseconds):
    assert span(value, "window") == nanoseconds


@pytest.mark.parametrize(
    "text", ["", " ", "10", "min", "10 parsecs", "10Min", "1.2.3s", "-1s", "1h30", "1h,30min", "1e3s"]
)
def test_text_that_is_no_span(text):
    with pytest.raises(ValueError, match=r"lateness must be a span of time such as '10min'"):
        span(text, "lateness")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0.5ns", "whole nanoseconds"),
        ("300000d", "shorter than 292 years"),
        (np.timedelta64(400, "W") * 100, "shorter than 292 years"),
        (timedelta(seconds=-1), "must not be negative"),
        (np.timedelta64(-1, "s"), "must not be negative"),
        (np.timedelta64("NaT"), "missing"),
        (np.timedelta64(3, "M"), "weeks, days"),
        (np.timedelta64(3, "Y"), "weeks, days"),
        (np.timedelta64(3), "weeks, days"),
    ],
)
def test_span_out_of_range(value, message):
    with pytest.raises(ValueError, match=f"window .*{message}"):
        span(value, "window")


@pytest.mark.parametrize("value", [10, 10.0, True, None, b"10min"])
def test_span_of_another_type(value):
    with pytest.raises(TypeError, match=f"window must be a span.*{type(value).__name__}"):
        span(value, "window")


NOON = datetime(2020, 1, 1, 12, 0, 0, 500_000)
NOON_NS = 1_577_880_000_500_000_000


@pytest.mark.parametrize(
    "value",
    [
        1_577_880_000.5,
        np.float64(1_577_880_000.5),
        NOON,
        NOON.replace(tzinfo=UTC),
        NOON.replace(hour=14, tzinfo=timezone(timedelta(hours=2))),
        np.datetime64(NOON),
        pd.Timestamp(NOON),
        pd.Timestamp(NOON, tz="UTC").tz_convert("Asia/Tokyo"),
    ],
)
def test_one_moment(value):
    assert moment(value) == NOON_NS
    assert moments(value) == NOON_NS
    assert moments([value, value]).tolist() == [NOON_NS, NOON_NS]


@pytest.mark.parametrize("value", [5, np.int8(5), np.uint64(5), 5.0, np.float32(5), np.datetime64(5, "s")])
def test_numbers_are_seconds(value):
    assert moments(value) == 5 * SECOND


def _columns():
    aware = pd.Series(pd.to_datetime([NOON, NOON]).tz_localize("UTC").tz_convert("Asia/Tokyo"))
    naive = aware.dt.tz_convert(None)
    yield "pandas, aware", aware
    yield "pandas, naive", naive
    yield "pandas, Arrow", aware.astype(pd.ArrowDtype(pa.timestamp("us", "Asia/Tokyo")))
    yield "index", pd.DatetimeIndex(aware)
    yield "Arrow", pa.array(aware)
    yield "chunked", pa.chunked_array([pa.array(naive)])
    yield "polars, aware", pl.Series([NOON, NOON]).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
    yield "polars, naive", pl.Series([NOON, NOON])
    yield "strided", np.array([NOON, 0, NOON, 0], "datetime64[us]")[::2]
    yield "big-endian", np.array([NOON_NS / 1e9] * 2, ">f8")
    yield "nullable", pd.Series([NOON_NS / 1e9] * 2, dtype="Float64")
    yield "tuple", (NOON, NOON)


@pytest.mark.parametrize("column", [pytest.param(column, id=name) for name, column in _columns()])
def test_columns(column):
    result = moments(column)
    assert isinstance(result, np.ndarray)
    assert result.dtype == np.int64
    assert result.flags.c_contiguous
    assert result.tolist() == [NOON_NS, NOON_NS]


def test_no_moments():
    assert moments([]).tolist() == []


def test_floats_keep_the_microseconds_they_were_written_with():
    micros = np.random.default_rng(0).integers(1_500_000_000 * 10**6, 1_800_000_000 * 10**6, 10_000)
    seconds = [float(f"{m // 10**6}.{m % 10**6:06d}") for m in micros.tolist()]
    assert moments(seconds).tolist() == (micros * 1000).tolist()
    assert [moment(s) for s in seconds] == (micros * 1000).tolist()


def test_arrays_are_as_their_elements():
    """What is read in one pass, where rounding changes, at halves and at the ends of the range, is what one is."""
    random = np.random.default_rng(0)
    halves = random.integers(-(10**15), 10**15, 3000) + 0.5
    sizes = random.normal(size=3000) * 10.0 ** random.integers(-12, 10, 3000)
    edges = np.array([2.0**23, np.nextafter(2.0**23, 0), 2**51 / 1e6, 2**52 / 1e6, 9223372036.0, 0.0, -0.0])
    seconds = np.concatenate([halves / 1e6, halves / 1e9, sizes, edges, -edges])
    seconds = seconds[np.abs(seconds) <= 9223372036]
    assert moments(seconds).tolist() == [moment(float(value)) for value in seconds]
    assert moments(seconds[::-3]).tolist() == [moment(float(value)) for value in seconds[::-3]]
    whole = seconds.astype(np.int64)
    assert moments(whole).tolist() == [moment(int(value)) for value in whole]
    for unit in ("ns", "us", "ms", "s", "25s", "h"):
        times = whole.astype(f"M8[{unit}]") if unit in ("ns", "us") else (whole // 10**5).astype(f"M8[{unit}]")
        assert moments(times).tolist() == [moment(value) for value in times]
    assert moments(whole.astype(">i8")).tolist() == moments(whole).tolist()


def test_small_floats_keep_nanoseconds():
    assert moments([1e-9, 86_400.000000123]).tolist() == [1, 86_400_000_000_123]
    assert moment(1e-9) == 1


@pytest.mark.parametrize(
    "missing",
    [
        [0.0, float("nan")],
        [1, None],
        np.array([0, "NaT"], "datetime64[s]"),
        [NOON, pd.NaT],
        pd.Series([1, None], dtype="Int64"),
        pa.array([NOON, None]),
        pl.Series([1, None]),
    ],
)
def test_a_missing_time_is_named(missing):
    with pytest.raises(ValueError, match=r"at\[1\] is missing"):
        moments(missing)


@pytest.mark.parametrize("missing", [float("nan"), None, np.datetime64("NaT"), pd.NaT, pd.NA])
def test_one_missing_time(missing):
    with pytest.raises(ValueError, match=r"^at is missing"):
        moments(missing)


@pytest.mark.parametrize(
    "value",
    [1_577_880_000_000, -1e10, float("inf"), 10**30, datetime(3000, 1, 1), np.datetime64("3000-01-01", "s")],
)
def test_out_of_range_as_milliseconds_are(value):
    with pytest.raises(ValueError, match=r"^at is .* outside the years 1677 to 2262"):
        moments(value)
    with pytest.raises(ValueError, match=r"at\[0\] is .* outside the years 1677 to 2262"):
        moments([value])


@pytest.mark.parametrize("value", [True, np.timedelta64(1, "s"), {}, 1j, (1).__add__])
def test_no_time_at_all(value):
    with pytest.raises(TypeError, match=r"^at .*a time is a number of Unix seconds, a datetime, a date or text"):
        moments(value)
    with pytest.raises(TypeError, match=r"^at.*a time is a number of Unix seconds, a datetime, a date or text"):
        moments([value])


@pytest.mark.parametrize("value", ["yesterday", "2020", "", "2020-13-01", "1700000000", "12:00", "2020-01-01T25:00"])
def test_text_that_is_no_time(value):
    with pytest.raises(ValueError, match=f"^at is '{value}'; a time is a number of Unix seconds, .* or text such as"):
        moments(value)
    for many in ([0, value], np.array(["2020-01-01", value]), pd.Series(["2020-01-01", value])):
        with pytest.raises((ValueError, TypeError), match=rf"^at\[1\] is '{value}'; a time is|^at\[0\] is '0'; a time"):
            moments(many)


def test_text_dates_and_decimals():
    noon = 1_714_564_800 * 10**9
    for text in ("2024-05-01T12:00", "2024-05-01 12:00:00", "2024-05-01T12:00:00Z", "20240501T140000+02:00"):
        assert moments(text) == noon
        for many in (
            [text],
            np.array([text]),
            np.array([text], STRINGS),
            pd.Series([text]),
            pl.Series([text]),
            pa.array([text]),
        ):
            assert moments(many).tolist() == [noon]
    assert moments("2024-05-01T12:00:00.000005") == noon + 5000
    for day in (date(2024, 5, 1), "2024-05-01", "20240501"):
        assert moments(day) == moments([day])[0] == noon - 43_200 * 10**9
    assert moments(Decimal("1714564800.000000005")) == moments([Decimal("1714564800.000000005")])[0] == noon + 5
    assert moments(pa.array([Decimal("-0.5")])).tolist() == [-500_000_000]
    for missing in (Decimal("NaN"), [Decimal("sNaN")]):
        with pytest.raises(ValueError, match="is missing"):
            moments(missing)
    for far in (Decimal("1e11"), Decimal("-Infinity"), Decimal("1e999999")):
        with pytest.raises(ValueError, match="outside the years 1677 to 2262"):
            moments(far)
    with pytest.raises(ValueError, match="outside the years 1677 to 2262"):
        moments(date(1, 1, 1))


@pytest.mark.parametrize(
    "at",
    [
        [20200131, 20200201, 20200201],
        [20200201, 20200131, 20200201],
        np.array([20200131.0, 20200201.0, 20211231.0]),
        pd.Series([2019, 2019, 2020]),
        [2020, 2019, 2020],
        np.arange(19000101, 19000132).repeat(1000),
    ],
    ids=str,
)
@pytest.mark.parametrize("options", [{}, {"fpr": 0.1}])
def test_numbers_that_are_dates_are_warned_of(at, options):
    with pytest.warns(UserWarning, match="the times look like dates, such as 20260131") as caught:
        lately.duplicated(np.zeros(len(at)), "1d", at=at, **options)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "at",
    [
        [],
        [2000, 2001],
        [1800, 2000, 2020],
        [2000, 2000.5, 2001],
        [20200131, 20200201, 20200232],
        [20201331, 20201332, 20201333],
        [1_700_000_000, 1_700_000_001, 1_700_000_002],
        range(0, 999),
        pd.to_datetime(range(4000)),
        pd.to_datetime(["2020-01-31"] * 3),
    ],
    ids=str,
)
def test_other_numbers_are_not(at):
    lately.duplicated(np.zeros(len(at)), "1d", at=at)


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_many_numbers_before_1990_are_warned_of_unless_they_have_a_unit(unit):
    """Milliseconds from the start of a recording: a window of a minute would be one of 60 ms."""
    at = np.arange(0, 4_000_000, 1000)
    for given in (at, at / 2, at[::-1]):
        with pytest.warns(UserWarning, match=r"before 1990 as Unix seconds: .* pass at.astype\('datetime64\[ms\]'\)"):
            lately.duplicated(at, "1min", at=given)
        lately.duplicated(at, "1min", at=given.astype(f"datetime64[{unit}]"))


def test_two_dimensions():
    with pytest.raises(ValueError, match="at must have one dimension, got 2"):
        moments(np.zeros((2, 2)))


# The container of the times must not matter, nor whether they are read singly or in blocks.
IN_ORDER = 1_700_000_000 + np.repeat(np.arange(5000), 4)
STEPPING_BACK = IN_ORDER - np.random.default_rng(3).integers(0, 5, len(IN_ORDER))
HELD_AS = {
    "int64": lambda times: times,
    "every other of int64": lambda times: np.repeat(times, 2)[::2],
    "backwards": lambda times: times[::-1].copy()[::-1],
    "int32": lambda times: times.astype(np.int32),
    "float64": lambda times: times.astype(float),
    "unaligned": lambda times: np.frombuffer(b"x" + times.tobytes(), np.uint8)[1:].view(np.int64),
    "big-endian": lambda times: times.astype(">i8"),
    "list": lambda times: times.tolist(),
    "Series": lambda times: pd.Series(pd.to_datetime(times, unit="s", utc=True)),
    "Arrow": lambda times: pa.array(times, pa.timestamp("s")),
}
for unit in ("s", "ms", "us", "ns"):
    HELD_AS[f"datetime64[{unit}]"] = lambda times, unit=unit: times.astype("M8[s]").astype(f"M8[{unit}]")


@pytest.fixture(scope="module", params=[IN_ORDER, STEPPING_BACK], ids=["in order", "stepping back"])
def single_calls(request):
    """Times, keys, a new filter, and the answers of single calls with the filter that they leave."""
    times = request.param
    keys = np.random.default_rng(4).integers(0, 2000, len(times))
    new = lately.AgePartitionedBloomFilter("60s", 0.01, capacity=400, lateness="5s")
    f = new.copy()
    return times, keys, new, [f.duplicated([k], at=int(time))[0] for k, time in zip(keys, times, strict=True)], f


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("held", HELD_AS)
def test_a_batch_is_as_single_calls(held, single_calls, threads):
    times, keys, new, answers, left = single_calls
    f, at = new.copy(), HELD_AS[held](times)
    np.testing.assert_array_equal(f.duplicated(keys, at=at, threads=threads), answers)
    assert f.to_bytes() == left.to_bytes()
    assert f.query(keys[-4:], at=at[-4:], threads=threads).all()
