"""Filters in binary files of Python: of any kind, and in transfers of any size."""

import gzip
import io
import socket
import threading
from functools import partial

import numpy as np
import pytest

import lately

KEYS = np.arange(200_000)


@pytest.fixture(scope="module")
def full():
    """A filter with more bytes than one transfer."""
    f = lately.Filter(1_000_000, 0.001)
    f.insert(KEYS)
    assert f.nbytes > 2 << 20
    return f


class Slow(io.RawIOBase):
    """A raw file that moves at most 70,001 bytes at a time, as a pipe does."""

    def __init__(self, content=b""):
        self.content = io.BytesIO(content)

    def readable(self):
        return True

    def writable(self):
        return True

    def readinto(self, room):
        return self.content.readinto(memoryview(room)[:70_001])

    def write(self, data):
        return self.content.write(bytes(data)[:70_001])


class Quiet:
    """A writer of a user's own that accepts all bytes and returns None."""

    def __init__(self):
        self.parts = []

    def write(self, data):
        self.parts.append(bytes(data))


def test_filters_are_saved_one_after_another_in_any_file(full, tmp_path):
    other = lately.Filter("1h", 0.01, capacity=50)
    other.add("a", at=1_000_000_000)
    exact = lately.ExactFilter(50)
    exact.add("a")
    for open_ in (open, partial(gzip.open, compresslevel=1)):
        with open_(tmp_path / "f", "wb") as file:
            file.write(b"head")
            for each in (full, other, exact):
                each.save(file)
            file.write(b"tail")
        with open_(tmp_path / "f", "rb") as file:
            assert file.read(4) == b"head"
            assert [lately.open(file) for _ in range(3)] == [full, other, exact]
            assert file.read() == b"tail", "not a byte beyond the filters is read"


def test_files_that_take_and_give_little_at_a_time(full):
    slow = Slow()
    full.save(slow)
    assert slow.content.getvalue() == full.to_bytes()
    assert lately.open(Slow(full.to_bytes())) == full
    quiet = Quiet()
    full.save(quiet)
    assert b"".join(quiet.parts) == full.to_bytes()


def test_over_a_socket(full):
    ours, theirs = socket.socketpair()

    def send():
        with ours, ours.makefile("wb") as file:
            full.save(file)
            full.save(file)

    sender = threading.Thread(target=send)
    sender.start()
    with theirs, theirs.makefile("rb") as file:
        assert [lately.open(file), lately.open(file)] == [full, full]
        with pytest.raises(EOFError):
            lately.open(file)
    sender.join()


def test_the_end_of_a_file_is_no_filter():
    file = io.BytesIO()
    lately.Filter(1000, 0.001).save(file)
    with pytest.raises(EOFError, match=r"at its end, so there is no filter to read: seek\(0\) first"):
        lately.open(file)


def test_damage_is_an_error():
    data = lately.Filter(1000, 0.001).to_bytes()
    for cut in (1, 63, 64, 100, 200, len(data) - 1):
        with pytest.raises(lately.FormatError, match="cut short"):
            lately.open(io.BytesIO(data[:cut]))
    with pytest.raises(lately.FormatError, match="not a saved filter"):
        lately.open(io.BytesIO(b"x" * 500))


class Odd:
    """A file whose `read` and `write` return, or raise, something odd."""

    def __init__(self, *results):
        self.results = list(results)

    def read(self, size):
        results = self.results.pop(0) if self.results[1:] else self.results[0]
        if isinstance(results, Exception):
            raise results
        return results

    write = read


@pytest.mark.parametrize("results", [KeyError("mine"), OSError(28, "mine"), ConnectionResetError("mine")])
def test_an_error_of_a_file_passes_unchanged(results):
    for call in (lately.open, lately.Filter(1000, 0.001).save):
        with pytest.raises(type(results), match="mine") as caught:
            call(Odd(results))
        assert caught.value is results


def test_impossible_results_of_read_and_write_are_errors():
    for given in (5, "text", -1, bytearray(64)):
        with pytest.raises(TypeError, match="bytes"):
            lately.open(Odd(given))
    with pytest.raises(OSError, match="returned 2097152 bytes for a request of 64"):
        lately.open(Odd(b"x" * (1 << 21)))
    with pytest.raises(BlockingIOError, match="non-blocking"):
        lately.open(Odd(None))
    # As everywhere in Python, an interrupted call is made again.
    with pytest.raises(BlockingIOError, match="non-blocking"):
        lately.open(Odd(InterruptedError(4, "once"), None))
    f = lately.Filter(1000, 0.001)
    with pytest.raises(OSError, match="returned 1000000000 bytes for a request of "):
        f.save(Odd(10**9))
    with pytest.raises(OSError, match="write"):
        f.save(Odd(0))
    for taken in (-1, "all", 1.0):
        with pytest.raises((OverflowError, TypeError)):
            f.save(Odd(taken))


def test_a_raw_file_that_would_block_is_an_error():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for end in (ours, theirs):
            end.setblocking(False)
        with theirs.makefile("rb", buffering=0) as file, pytest.raises(BlockingIOError, match="non-blocking"):
            lately.open(file)
        with ours.makefile("wb", buffering=0) as file, pytest.raises(BlockingIOError, match="non-blocking"):
            lately.Filter(10_000_000, 0.001).save(file)


def test_an_object_that_is_no_binary_file_is_rejected(tmp_path):
    f = lately.Filter(1000, 0.001)
    for call, needed in ((f.save, "write"), (lately.open, "read")):
        for what, name in ((5, "int"), (None, "NoneType"), (b"path", "bytes")):
            with pytest.raises(TypeError, match=f"file must be a path, or a binary file to {needed}, not {name}"):
                call(what)
        for text in (io.StringIO(), (tmp_path / "t").open("w+")):
            with text, pytest.raises(TypeError, match="file must be binary, got a text file"):
                call(text)
    with pytest.raises(ValueError, match="mmap=True needs the path of a file"):
        lately.open(io.BytesIO(f.to_bytes()), mmap=True)
    with (tmp_path / "r").open("wb") as file, pytest.raises(io.UnsupportedOperation):
        lately.open(file)


def test_a_save_is_of_one_moment_though_others_insert():
    f = lately.Filter(3_000_000, 0.001)
    f.insert(KEYS)
    before = f.to_bytes()

    class Meanwhile(Quiet):
        def write(self, data):
            f.insert(KEYS + 10**6 * (1 + len(self.parts)))
            super().write(data)

    file = Meanwhile()
    f.save(file)
    assert b"".join(file.parts) == before
