"""The exact one-liner beside a dictionary of when each key was last seen."""

import signal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lately
from support.exact import repeats, repeats_by_time


@given(
    rows=st.lists(st.tuples(st.integers(0, 8), st.integers(-20, 20)), max_size=40),
    window=st.integers(1, 45),
    refresh=st.sampled_from([True, False, "delivered"]),
    threads=st.integers(1, 3),
)
def test_any_keys_and_times_in_any_order(rows, window, refresh, threads):
    keys, times = [key for key, _ in rows], [time for _, time in rows]
    options = {"refresh": refresh, "threads": threads}
    assert lately.duplicated(keys, window, **options).tolist() == repeats(keys, window, refresh=refresh)
    mask = lately.duplicated(keys, f"{window}s", at=times, **options)
    assert mask.tolist() == repeats_by_time(keys, window, times, refresh=refresh is True)


@pytest.mark.parametrize("refresh", [True, False, "delivered"])
@pytest.mark.parametrize("window", [1, 50, 5000, 60_000])
def test_long_columns_of_every_kind(window, refresh):
    rng = np.random.default_rng(4)
    keys = rng.integers(0, 2 * min(window, 20_000), 60_000)
    mask = repeats(keys.tolist(), window, refresh=refresh)
    assert 0.02 < np.mean(mask) < 0.98 or refresh == "delivered"
    texts = keys.astype(str)
    columns = [
        keys,
        keys[::-1].copy()[::-1],
        pl.Series(texts),
        pa.chunked_array([texts[:7], texts[7:]]),
        pd.Series(texts),
    ]
    for column in columns:
        assert lately.duplicated(column, window, refresh=refresh).tolist() == mask
    assert lately.duplicated(keys, window, refresh=refresh, threads=2).tolist() == mask


def test_hashes_of_any_make_and_seed():
    keys = list("abcab")
    secret = bytes(range(16))
    for seed in (0, 7, secret):
        hashes = lately.Hashes(lately.hash_keys(keys, seed=seed), seed=seed)
        assert lately.duplicated(hashes, 10).tolist() == [False, False, False, True, True]
    with pytest.raises(ValueError, match="these hashes have seed=0, but here the seed is 1"):
        lately.duplicated(lately.Hashes(lately.hash_keys(keys)), 10, seed=1)
    # Hashes that all lie close together: a table that believed them would search all of itself for each key.
    crowd = np.arange(300_000, dtype=np.uint64)
    mask = lately.duplicated(lately.Hashes(np.append(crowd, crowd)), 10**6)
    assert not mask[:300_000].any()
    assert mask[300_000:].all()


def test_streams_of_arrow_and_iterators():
    batches = [pa.record_batch({"a": pa.array(part, pa.int64())}) for part in ([1, 2], [], [1, 3, 2])]
    for options in ({}, {"fpr": 0.001, "seed": 0}):
        reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
        assert lately.duplicated(reader, 10, **options).tolist() == [False, False, True, False, True]
        assert lately.duplicated(iter([1, 2, 1]), 10, **options).tolist() == [False, False, True]


def test_ctrl_c_ends_it():
    def interrupt(*_):
        raise KeyboardInterrupt

    # Hours of keys in no memory.
    keys = np.broadcast_to(np.int64(5), 1 << 32)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(KeyboardInterrupt):
            lately.duplicated(keys, 10)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_too_much_memory_is_an_error():
    with pytest.raises(MemoryError):
        lately.duplicated(np.broadcast_to(np.int64(5), 1 << 50), 10)
    with pytest.raises(MemoryError):
        next(lately.unique([1], 2**62))
