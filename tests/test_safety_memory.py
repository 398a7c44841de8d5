"""Arrays that change under a call, lie about themselves or contain themselves: errors, and no memory but theirs."""

import contextlib
import ctypes
import itertools
import random

import numpy as np
import pandas as pd
import pytest

import lately
from own_process import run

FILTER = lately.AgePartitionedBloomFilter(1000, 0.01)


# ------------------------------------------------------------------------------------------------------------- NumPy


def test_reshaping_an_array_from_hashes_changes_that_array_alone():
    lines = run(
        """
        f = lately.AgePartitionedBloomFilter(1_000_000, 0.01)
        h = lately.Hashes(lately.hash_keys(np.arange(1_000_000)))
        f.insert(h)
        v = np.asarray(h)
        v.shape = (10, 10**5)
        print(f.query(h).all())
        """
    )
    assert lines == ["True"]


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_hashes_are_what_they_were_whatever_becomes_of_their_views():
    h = lately.Hashes(lately.hash_keys(np.arange(1000)))
    before = lately.hash_keys(h)
    for give in (np.asarray, lambda h: h.__array__(), lambda h: h.__getnewargs_ex__()[0][0]):
        view = give(h)
        view.shape = (10, 100)
        assert len(h) == 1000
        assert (lately.hash_keys(h) == before).all()
        assert not view.flags.writeable
        assert np.asarray(h).shape == (1000,)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_hashes_of_a_subclass_are_safe_from_its_bases():
    class Own(np.ndarray):
        pass

    h = lately.Hashes(lately.hash_keys(np.arange(1000)).view(Own))
    before = lately.hash_keys(h)
    view = np.asarray(h)
    while isinstance(view, np.ndarray):
        view.shape = (10, -1)
        view = view.base
    assert (lately.hash_keys(h) == before).all()


@pytest.mark.parametrize("n", [10, 1_000_000])
def test_a_mask_that_is_too_short_is_an_error(n):
    lines = run(
        """
        n = int(sys.argv[1])
        keys = np.ma.masked_array(np.arange(n), mask=np.zeros(n, bool))
        import numpy.ma
        numpy.ma.getmaskarray = lambda array: np.zeros(5, bool)
        try:
            lately.hash_keys(keys)
        except ValueError as error:
            print(error)
        """,
        n,
    )
    assert lines == [f"the mask of a column must have one bool for each of {n} keys, but has 5"]


def test_an_extension_array_with_short_parts_is_an_error():
    series = pd.array([1, 2, None] * 1000, dtype="Int64")

    class Short(type(series)):
        def isna(self):
            return np.zeros(3, bool)

    class Wide(type(series)):
        def isna(self):
            return np.zeros(len(self), "u8")

    for kind, error in [(Short, ValueError), (Wide, TypeError)]:
        with pytest.raises(error):
            lately.hash_keys(kind(series._data, series._mask))


def test_codes_that_are_no_int64_are_an_error():
    class Codes:
        def astype(self, _):
            return np.arange(1000, dtype="u1")

    class Categories(pd.Categorical):
        @property
        def codes(self):
            return Codes()

    with pytest.raises(TypeError):
        lately.hash_keys(Categories(["a", "b"] * 500))


def test_a_frame_whose_columns_differ_in_length_is_an_error():
    class Frame(pd.DataFrame):
        def items(self):
            yield "a", pd.Series([1, 2, 3])
            yield "b", pd.Series([1, 2])

    with pytest.raises(ValueError, match="one key for each of 3 rows, but one has 2"):
        lately.hash_keys(Frame({"a": [1, 2, 3], "b": [1, 2, 3]}))


def test_an_array_that_converts_to_itself_or_to_another_shape_is_read_as_it_is():
    class Itself(np.ndarray):
        def astype(self, *_, **__):
            return self

    keys = np.arange(10, dtype=">i8")
    assert (lately.hash_keys(keys.view(Itself)) == lately.hash_keys(keys)).all()

    class Parts(np.ndarray):
        def __getitem__(self, _):
            return np.zeros((2, 2))

    with pytest.raises(ValueError, match="one key for each of 3 rows, but one has"):
        lately.hash_keys(np.zeros(3, [("a", "i8"), ("b", "i8")]).view(Parts))


# ----------------------------------------------------------------------------------------------------------- nesting


def test_a_value_that_contains_itself_is_an_error():
    lines = run(
        """
        import pandas as pd
        array = np.zeros(1, [("a", "O")])
        array["a"][0] = array[0]
        objects = np.zeros(1, "O")
        objects[0] = objects

        class Categories(pd.Categorical):
            @property
            def categories(self):
                return self

        class Text(type(pd.array(["a"], dtype="string[pyarrow]"))):
            def __arrow_array__(self, type=None):
                return self

        text = Text(pd.array(["a"], dtype="string[pyarrow]")._pa_array)
        for keys in (array, [array[0]], Categories(["a"]), text):
            try:
                lately.hash_keys(keys)
            except ValueError as error:
                print("nest" in str(error))
        try:
            lately.hash_keys(objects)
        except TypeError:
            print(True)
        """
    )
    assert lines == ["True"] * 5


def test_deep_records_are_an_error():
    kind = np.dtype("i8")
    for _ in range(100):
        kind = np.dtype([("a", kind)])
    with pytest.raises(ValueError, match="nest"):
        lately.hash_keys(np.zeros(3, kind))
    with pytest.raises(ValueError, match="nest"):
        FILTER.add(np.zeros(3, kind)[0])


# ------------------------------------------------------------------------------------------------------------- Arrow


class Schema(ctypes.Structure):
    """`ArrowSchema`."""


class Array(ctypes.Structure):
    """`ArrowArray`."""


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", RELEASE_SCHEMA),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]


@RELEASE_SCHEMA
def release_schema(schema):
    schema.contents.release = RELEASE_SCHEMA()


@RELEASE_ARRAY
def release_array(array):
    array.contents.release = RELEASE_ARRAY()


capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def pointers(kind, items):
    """A C array of pointers to structures."""
    return (ctypes.POINTER(kind) * max(len(items), 1))(*map(ctypes.pointer, items))


class Foreign:
    """An Arrow array as raw structures, which a test may falsify. Everything it points to is kept."""

    def __init__(self, format, buffers, length, *, children=(), dictionary=None, name=b"keys"):
        self.kept = [np.ascontiguousarray(b) if b is not None else None for b in buffers], children, dictionary
        held = (ctypes.c_void_p * max(len(buffers), 1))(*(b if b is None else b.ctypes.data for b in self.kept[0]))
        parts = [child.schema for child in children], [child.array for child in children]
        self.schema = Schema(format, name, None, 2, len(children), pointers(Schema, parts[0]), None, release_schema)
        own = held, pointers(Array, parts[1]), None, release_array
        self.array = Array(length, 0, 0, len(buffers), len(children), *own)
        if dictionary:
            self.schema.dictionary = ctypes.pointer(dictionary.schema)
            self.array.dictionary = ctypes.pointer(dictionary.array)

    def __arrow_c_array__(self, requested_schema=None):
        return (
            capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
            capsule(ctypes.addressof(self.array), b"arrow_array", None),
        )


def ints():
    return Foreign(b"l", [None, np.arange(20)], 20)


def strings(offsets="i4"):
    text = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", "u1")
    return Foreign(b"u" if offsets == "i4" else b"U", [np.full(4, 255, "u1"), np.arange(21).astype(offsets), text], 20)


def views():
    view = np.zeros(20, [("length", "i4"), ("start", "S4"), ("buffer", "i4"), ("offset", "i4")])
    view["length"] = 13
    return Foreign(b"vu", [None, view.view("u1"), np.zeros(99, "u1"), np.array([99])], 20)


def lists(offsets="i4"):
    return Foreign(b"+l" if offsets == "i4" else b"+L", [None, np.arange(21).astype(offsets)], 20, children=[ints()])


def list_views(kind):
    starts, sizes = np.arange(20)[::-1].astype(kind), np.ones(20, kind)
    return Foreign(b"+vl" if kind == "i4" else b"+vL", [None, starts, sizes], 20, children=[ints()])


def runs():
    return Foreign(b"+r", [], 20, children=[Foreign(b"i", [None, np.arange(1, 21, dtype="i4")], 20), ints()])


HONEST = {
    "ints": ints,
    "bools": lambda: Foreign(b"b", [None, np.zeros(4, "u1")], 20),
    "fixed": lambda: Foreign(b"w:3", [None, np.zeros(60, "u1")], 20),
    "strings": strings,
    "large strings": lambda: strings("i8"),
    "views": views,
    "nulls": lambda: Foreign(b"n", [], 20),
    "rows": lambda: Foreign(b"+s", [None], 20, children=[ints(), strings()]),
    "dictionary": lambda: Foreign(b"c", [None, np.arange(20, dtype="i1")], 20, dictionary=strings()),
    "decimals": lambda: Foreign(b"d:38,2", [None, np.zeros(320, "u1")], 20),
    "wide decimals": lambda: Foreign(b"d:76,2,256", [None, np.zeros(640, "u1")], 20),
    "lists": lists,
    "large lists": lambda: lists("i8"),
    "maps": lambda: Foreign(b"+m", [None, np.arange(21, dtype="i4")], 20, children=[HONEST["rows"]()]),
    "list views": lambda: list_views("i4"),
    "large list views": lambda: list_views("i8"),
    "pairs": lambda: Foreign(b"+w:1", [None], 20, children=[ints()]),
    "runs": runs,
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_structures_are_read(name):
    assert len(lately.hash_keys(HONEST[name]())) == 20


# Smaller numbers may be true: an Arrow array does not state how much memory its pointers lead to.
NUMBERS = [-1, -(2**63), 2**63 - 1, 2**62, 2**58]
LIES = {
    **{f"length={n}": ("array", "length", n) for n in NUMBERS},
    **{f"offset={n}": ("array", "offset", n) for n in NUMBERS},
    **{f"buffers={n}": ("array", "n_buffers", n) for n in (-1, 0, 1, -(2**63))},
    "no buffers": ("array", "buffers", None),
    **{f"children={n}": ("array", "n_children", n) for n in (-1, 0, 1)},
    "no children": ("array", "children", None),
    "no dictionary": ("array", "dictionary", None),
    "released": ("array", "release", RELEASE_ARRAY()),
    **{f"child types={n}": ("schema", "n_children", n) for n in (-1, 0, 1)},
    "no child types": ("schema", "children", None),
    "no dictionary type": ("schema", "dictionary", None),
    **{
        f"format={f}": ("schema", "format", f)
        for f in (None, b"\xff", b"w:-3", b"+l", b"+r", b"+ud:0", b"", b"d:9,9", b"+w:9")
    },
    "name": ("schema", "name", b"\xff"),
}


@pytest.mark.parametrize("name", HONEST)
def test_lying_structures_are_errors_or_as_good_as_true(name, capfd):
    for lies in (*itertools.combinations(LIES, 1), *itertools.combinations(LIES, 2)):
        arrow = HONEST[name]()
        for part, field, value in map(LIES.get, lies):
            setattr(getattr(arrow, part), field, value)
        length = arrow.array.length
        with contextlib.suppress(TypeError, ValueError, MemoryError):
            assert len(lately.hash_keys(arrow)) == length, lies
        # Nor is a panic caught and called an error.
        assert len(lies) > 1 or capfd.readouterr().err == "", lies
    assert capfd.readouterr().err == ""


WITHIN = ["rows", "dictionary", "strings", "large strings", "views", "lists", "large lists", "pairs", "runs"]
WITHIN += ["maps", "list views", "large list views"]


@pytest.mark.parametrize("seed", range(20))
def test_lies_about_what_is_within(seed, capfd):
    chance = random.Random(seed)
    for _ in range(50):
        arrow = HONEST[chance.choice(WITHIN)]()
        _, children, dictionary = arrow.kept
        for _ in range(chance.randrange(1, 4)):
            victim = chance.choice([arrow, *children, *([dictionary] if dictionary else [])])
            part, field, value = LIES[chance.choice(sorted(LIES))]
            if chance.random() < 0.5:
                setattr(getattr(victim, part), field, value)
        # Any codes, any views, and any offsets but the last, which cannot be checked.
        for buffer in victim.kept[0]:
            if buffer is not None and buffer.flags.writeable and len(buffer) > 21 - 1:
                buffer[chance.randrange(len(buffer) - 2)] = chance.randrange(-100, 100) % 128
        with contextlib.suppress(TypeError, ValueError, MemoryError):
            lately.hash_keys(arrow)
    assert capfd.readouterr().err == ""


def test_offsets_that_go_backwards_or_below_are_errors():
    for offsets in ("i4", "i8"):
        arrow = strings(offsets)
        arrow.kept[0][1][-1] = -5
        with pytest.raises(ValueError, match="offsets from 0 to -5"):
            lately.hash_keys(arrow)
        arrow = strings(offsets)
        arrow.kept[0][1][0] = -5
        with pytest.raises(ValueError, match="offsets from -5"):
            lately.hash_keys(arrow)


def test_runs_that_end_at_no_whole_numbers_are_an_error():
    for ends in (b"d:9,9", b"u", b"L", b"n"):
        arrow = Foreign(b"+r", [], 20, children=[Foreign(ends, [None, np.arange(20)], 20, name=b"run_ends"), ints()])
        with pytest.raises(ValueError, match="runs whose ends are not integers"):
            lately.hash_keys(arrow)


def test_maps_of_other_content_than_pairs_are_rejected():
    for within in (ints(), Foreign(b"+s", [None], 20, children=[ints()], name=b"entries")):
        arrow = Foreign(b"+m", [None, np.arange(21, dtype="i4")], 20, children=[within])
        with pytest.raises(ValueError, match="a map without pairs"):
            lately.hash_keys(arrow)


def test_deep_arrow_types_are_an_error():
    arrow = ints()
    for _ in range(20):
        arrow = Foreign(b"+s", [None], 20, children=[arrow])
    assert len(lately.hash_keys(arrow)) == 20
    for _ in range(5000):
        arrow = Foreign(b"+s", [None], 20, children=[arrow])
    with pytest.raises(ValueError, match="nested at most 32 deep"):
        lately.hash_keys(arrow)
