"""The accessor of pandas gives what the exact window gives, with pandas' index."""

import numpy as np
import pandas as pd
import pytest

import lately.integrations.pandas  # noqa: F401 - registers the accessor
from support.exact import ExactWindow


@pytest.fixture
def clicks():
    """Rows with an index that repeats, in disorder, and a second in which several happen."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"ip": rng.integers(0, 9, 400), "url": rng.choice(["/", "/a"], 400)})
    frame["time"] = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.sort(rng.integers(0, 4000, 400)), "s")
    return frame.set_index(rng.integers(0, 50, 400))


def seconds(frame) -> list[float]:
    return (frame["time"] - frame["time"].iloc[0]).dt.total_seconds().tolist()


def test_rows_are_dropped_as_by_the_exact_window(clicks):
    keys = list(zip(clicks["ip"], clicks["url"], strict=True))
    repeats = np.array(ExactWindow(60).duplicated(keys, seconds(clicks)))
    assert 0 < repeats.sum() < 400
    left = clicks.lately.drop_duplicates(["ip", "url"], window="1min", at="time")
    pd.testing.assert_frame_equal(left, clicks[~repeats])
    marks = clicks.lately.duplicated(["ip", "url"], window="1min", at=clicks["time"])
    pd.testing.assert_series_equal(marks, pd.Series(repeats, index=clicks.index))


def test_a_column(clicks):
    repeats = np.array(ExactWindow(5).duplicated(clicks["ip"].tolist(), range(400)))
    pd.testing.assert_series_equal(clicks["ip"].lately.drop_duplicates(window=5), clicks["ip"][~repeats])
    marks = clicks["ip"].lately.duplicated(window=5)
    assert marks.name == "ip"
    assert marks.tolist() == repeats.tolist()


def test_times_in_the_index(clicks):
    timed = clicks.set_index("time")
    repeats = ExactWindow(60).duplicated(clicks["ip"].tolist(), seconds(clicks))
    assert timed.lately.duplicated("ip", window="1min", at=timed.index).tolist() == list(repeats)


def test_a_filter_marks_every_repeat_too(clicks):
    repeats = np.array(ExactWindow(50).duplicated(clicks["ip"].tolist(), range(400)))
    marks = clicks.lately.duplicated("ip", window=50, fpr=0.01, seed=1)
    assert marks[repeats].all()


def test_empty(clicks):
    none = clicks.iloc[:0]
    assert none.lately.drop_duplicates("ip", window=5).shape == (0, 3)
    assert none["ip"].lately.duplicated(window=5).dtype == bool


def test_times_of_other_rows_are_rejected(clicks):
    """pandas aligns by index; here the order counts, so a Series in another order must not be taken silently."""
    with pytest.raises(ValueError, match="at must have the index of the rows"):
        clicks.lately.duplicated("ip", window="1min", at=clicks["time"].sort_index())
    with pytest.raises(KeyError, match="hour"):
        clicks.lately.duplicated("ip", window="1min", at="hour")
    with pytest.raises(TypeError, match="window"):
        clicks.lately.duplicated("ip")
    with pytest.raises(TypeError, match="subset"):
        clicks["ip"].lately.duplicated("ip", window=5)
