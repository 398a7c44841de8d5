"""Blocks of a file are read while earlier ones are processed: the output, and its moment, stay the same."""

import threading
from itertools import count

import pytest

from lately.cli.readahead import read_ahead

LINE = b'{"k": %d}\n'


def test_items_come_in_order_and_one_is_made_ahead():
    made = []

    def items():
        for i in range(5):
            made.append(i)
            yield i

    for i in read_ahead(items()):
        assert made[-1] in (i, i + 1)
        assert made == list(range(len(made)))
    assert (i, made) == (4, list(range(5)))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_comes_where_the_item_would_have_come(error):
    def items():
        yield from range(3)
        raise error("here")

    given = read_ahead(items())
    assert [next(given) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(error, match="here"):
        next(given)


def test_ending_early_leaves_no_thread_and_makes_no_further_item():
    numbers, before = count(), threading.active_count()
    items = read_ahead(numbers)
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    items.close()
    assert threading.active_count() == before
    assert next(numbers) in (3, 4)


def test_a_malformed_record_of_a_later_block_is_reported_in_order(tmp_path, dedupe):
    lines = [LINE % i for i in range(300_000)]
    lines[250_000] = b"{\n"
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    before = threading.active_count()
    # With a seed of its own a filter drops one of these keys by chance, in one test of eight.
    arguments = (tmp_path / "a.jsonl", "--key", "k", "--window", 300_000, "--seed", 1)
    ended = dedupe(*arguments)
    assert (ended.status, threading.active_count()) == (1, before)
    assert "a.jsonl, line 250001: not JSON" in ended.err
    assert ended.out == b"".join(lines[:250_000])[: len(ended.out)]
    assert len(ended.out) > 2 << 20
    passed = dedupe(*arguments, "--skip-bad")
    assert passed.out == b"".join(lines[:250_000] + lines[250_001:])
    assert "malformed  1, skipped" in passed.err
