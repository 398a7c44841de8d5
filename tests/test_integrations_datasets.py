"""Hugging Face datasets, unmodified, keep the new examples: from disk, streamed, in batches, epoch after epoch."""

import random

import datasets
import pytest

import lately
from lately.integrations.datasets import new
from support.exact import repeats

ROWS = 3000


@pytest.fixture(autouse=True)
def quiet(tmp_path, monkeypatch):
    """Caches go into a folder of the test's own; no bars."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    datasets.disable_progress_bars()


@pytest.fixture(scope="module")
def columns() -> dict:
    chance = random.Random(5)
    return {
        "text": [f"text {chance.randrange(800)}" if chance.random() > 0.02 else None for _ in range(ROWS)],
        "lang": [chance.choice(["en", "de"]) for _ in range(ROWS)],
        "time": sorted(chance.randrange(5000) for _ in range(ROWS)),
        "id": list(range(ROWS)),
    }


def first_seen(keys, window=ROWS, times=None) -> list[int]:
    """The rows whose key was not seen within the window: the definition."""
    return [row for row, seen in enumerate(repeats(keys, window, times)) if not seen]


def ids(dataset) -> list[int]:
    return [example["id"] for example in dataset]


def kinds(columns):
    """Rows as a dataset, as one of several shards, and streamed."""
    whole = datasets.Dataset.from_dict(columns)
    yield whole
    yield whole.to_iterable_dataset()
    yield whole.to_iterable_dataset(num_shards=4)


@pytest.mark.parametrize("how", [{"batched": True}, {"batched": True, "batch_size": 7}, {"batched": False}])
def test_a_whole_dataset(columns, how):
    for dataset in kinds(columns):
        left = dataset.filter(new("text"), with_indices=True, **how)
        assert ids(left) == first_seen(columns["text"])


def test_windows(columns):
    pairs = list(zip(columns["text"], columns["lang"], strict=True))
    for dataset in kinds(columns):
        left = dataset.filter(new(["text", "lang"], window=500), with_indices=True, batched=True)
        assert ids(left) == first_seen(pairs, 500)
        left = dataset.filter(new("text", window="10min", at="time"), with_indices=True, batched=True)
        assert ids(left) == first_seen(columns["text"], 600, columns["time"])


def test_every_epoch_has_the_same_examples(columns):
    """An epoch that is broken off, and two whole ones."""
    stream = next(kinds(columns)).to_iterable_dataset().filter(new("text"), with_indices=True, batched=True)
    for example in stream:
        if example["id"] > 100:
            break
    assert ids(stream) == ids(stream) == first_seen(columns["text"])


def test_the_cache_holds_what_was_queried(columns, tmp_path):
    """A repeated question is answered from the cache, another is not. A used predicate is as good as a new one."""
    datasets.Dataset.from_dict(columns).save_to_disk(tmp_path / "kept")
    whole = datasets.load_from_disk(tmp_path / "kept")
    used = new("text")
    for _ in range(2):
        for predicate in (used, new("text")):
            assert ids(whole.filter(predicate, with_indices=True, batched=True)) == first_seen(columns["text"])
    short = whole.filter(new("text", window=50), with_indices=True, batched=True)
    assert ids(short) == first_seen(columns["text"], 50)
    other = whole.select(range(100, ROWS)).filter(used, with_indices=True, batched=True)
    assert [row - 100 for row in ids(other)] == first_seen(columns["text"][100:])


def test_arrow_and_token_ids():
    """Formats without Python objects, and keys that are lists."""
    tokens = datasets.Dataset.from_dict({"ids": [[1, 2], [3], [1, 2], [], [3, 0]]})
    for dataset in (tokens, tokens.with_format("arrow"), tokens.with_format("numpy"), tokens.with_format("pandas")):
        left = dataset.filter(new("ids"), with_indices=True, batched=True).with_format(None)
        assert left["ids"][:] == [[1, 2], [3], [], [3, 0]]


@pytest.mark.parametrize("format", ["arrow", "numpy", "pandas", "polars"])
def test_formats(columns, format):
    """As without a format, for one column and for two."""
    whole = next(kinds(columns)).with_format(format)
    for key in ("text", ["text", "lang"]):
        expected = columns["text"] if key == "text" else list(zip(columns["text"], columns["lang"], strict=True))
        left = whole.filter(new(key), with_indices=True, batched=True).with_format(None)
        assert ids(left) == first_seen(expected)


def test_a_filter_in_constant_memory(columns):
    """All but few of the new examples are left, no repeat is, and none whose key the filter had before."""
    known = lately.BloomFilter(2000, 1e-3)
    known.insert([f"text {number}" for number in range(400)])
    expected = [row for row in first_seen(columns["text"]) if int((columns["text"][row] or "x 400").split()[1]) >= 400]
    for dataset in kinds(columns):
        left = ids(dataset.filter(new("text", filter=known), with_indices=True, batched=True))
        assert set(left) <= set(expected)
        # 400 new keys are dropped with probability 1e-3 each: more than 6 of them once in 2e5.
        assert len(left) >= len(expected) - 6
    assert known.inserted == 400


def test_missing_texts(columns):
    left = next(kinds(columns)).filter(new("text", missing="distinct"), with_indices=True, batched=True)
    assert left["text"][:].count(None) == columns["text"].count(None) > 10


def test_several_processes_are_rejected(columns):
    """Each would keep repeats of what the others see, in silence."""
    with pytest.raises(RuntimeError, match="leave out num_proc"):
        next(kinds(columns)).filter(new("text"), with_indices=True, batched=True, num_proc=2)


def test_a_stream_that_goes_on_in_the_middle(columns):
    """After load_state_dict: by the predicate that has seen what came before, and by one that has not."""
    stream = next(kinds(columns)).to_iterable_dataset(num_shards=4)
    left = stream.filter(new("text"), with_indices=True)
    steps = iter(left)
    before = [next(steps)["id"] for _ in range(500)]
    state = left.state_dict()
    left.load_state_dict(state)
    assert before + ids(left) == first_seen(columns["text"])
    other = stream.filter(new("text"), with_indices=True)
    other.load_state_dict(state)
    with pytest.raises(RuntimeError, match="did not pass here"):
        next(iter(other))


def test_a_dataset_without_indices_is_rejected(columns):
    for how in ({}, {"batched": True}):
        with pytest.raises(TypeError, match="with_indices=True"):
            next(kinds(columns)).filter(new("text"), **how)
    with pytest.raises(TypeError, match="input_columns"):
        next(kinds(columns)).filter(new("text"), with_indices=True, input_columns="text")


def test_bad_columns(columns):
    with pytest.raises(KeyError, match="txet"):
        next(kinds(columns)).filter(new("txet"), with_indices=True, batched=True)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"key": []}, TypeError, "key must be the name of a column"),
        ({"key": "text", "window": "10min"}, TypeError, "needs at"),
        ({"key": "text", "window": 0}, ValueError, "window"),
        ({"key": "text", "missing": "all"}, ValueError, "missing"),
        ({"key": "text", "filter": "line"}, TypeError, "filter of lately"),
        ({"key": "text", "window": 5, "filter": lately.BloomFilter(5, 0.1)}, ValueError, "leave out window"),
    ],
)
def test_bad_parameters(given, error, words):
    with pytest.raises(error, match=words):
        new(**given)
