"""Batches that differ from their description, fail on the way, or change while they are read."""

import ctypes
import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import lately


def hashes(keys):
    return lately.hash_keys(keys).tolist()


class Hostile:
    def __init__(self, stream=None, array=None):
        if stream is not None:
            self.__arrow_c_stream__ = lambda: stream
        if array is not None:
            self.__arrow_c_array__ = lambda: array


def empty_capsule(name, size):
    """A capsule of this name with a released structure."""
    memory = ctypes.create_string_buffer(size)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    KEPT.extend((memory, name))
    return new(ctypes.addressof(memory), name, None)


KEPT = []


@pytest.mark.parametrize(
    "hostile",
    [
        Hostile(stream=5),
        Hostile(stream=()),
        Hostile(stream=empty_capsule(b"other", 40)),
        Hostile(stream=pa.array([5]).__arrow_c_array__()[0]),
        Hostile(array=5),
        Hostile(array=(5, 5)),
        Hostile(array=(1, 2, 3)),
        Hostile(array=pa.array([5]).__arrow_c_array__()[::-1]),
    ],
)
def test_objects_without_the_arrow_interface_are_rejected(hostile):
    with pytest.raises(TypeError, match=r"__arrow_c_\w+ of .*Hostile must return"):
        lately.hash_keys(hostile)


def test_arrow_structures_that_are_spent():
    with pytest.raises(ValueError, match="stream that has been read already"):
        lately.hash_keys(Hostile(stream=empty_capsule(b"arrow_array_stream", 40)))
    schema, array = pa.array([5]).__arrow_c_array__()
    once = Hostile(array=(schema, array))
    assert hashes(once) == hashes([5])
    with pytest.raises(ValueError, match="array that has been read already"):
        lately.hash_keys(once)
    with pytest.raises(ValueError, match="schema that has been read already"):
        lately.hash_keys(Hostile(array=(empty_capsule(b"arrow_schema", 72), empty_capsule(b"arrow_array", 80))))


def test_errors_of_a_producer_come_through():
    class Broken:
        def __arrow_c_stream__(self):
            raise LookupError("nothing there")

    def batches():
        yield pa.record_batch({"a": [1]})
        raise OSError("the disk is gone")

    with pytest.raises(LookupError, match="nothing there"):
        lately.hash_keys(Broken())
    with pytest.raises(ValueError, match="the disk is gone"):
        lately.hash_keys(pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches()))


def test_errors_of_an_iterable_come_through():
    with pytest.raises(ZeroDivisionError):
        lately.hash_keys(1 // i for i in (1, 0))


@pytest.mark.parametrize("before", [0, 5, 70, 200])
@pytest.mark.parametrize("plain", [lambda i: i, lambda i: f"key {i}", lambda i: (i, str(i)), lambda i: i / 3])
def test_a_list_that_changes_meanwhile(before, plain):
    """A key whose hash empties the list, or fills it with others: no key is read that is no longer there."""
    keys = []

    class Zone(dt.tzinfo):
        def utcoffset(self, _):
            keys[:] = after
            return dt.timedelta(0)

    moment = dt.datetime(2026, 1, 1, tzinfo=Zone())
    for after in [], [f"new {i}" for i in range(before + 3)], list(range(before + 300)):
        keys[:] = [*map(plain, range(before)), moment, *map(plain, range(1000, 1100))]
        expected = [*map(plain, range(before)), moment, *after[before + 1 : before + 101]]
        assert (lately.hash_keys(keys) == lately.hash_keys(expected)).all()


def test_an_array_of_objects_that_changes_meanwhile():
    array = np.empty(10, dtype=object)

    class Zone(dt.tzinfo):
        def utcoffset(self, _):
            array[:] = [10**6 + i for i in range(10)]
            return dt.timedelta(0)

    moment = dt.datetime(2026, 1, 1, tzinfo=Zone())
    array[:] = [1, "a", moment, *[dt.datetime(2026, 1, 2)] * 7]
    expected = lately.hash_keys([1, "a", moment, *range(10**6 + 3, 10**6 + 10)])
    array[:] = [1, "a", moment, *[dt.datetime(2026, 1, 2)] * 7]
    del moment
    assert (lately.hash_keys(array) == expected).all()
