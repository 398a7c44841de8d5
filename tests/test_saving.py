"""Saving: what is read is what was written, files are replaced whole or not at all, and damage is an error."""

import io
import json
import os
import pickle
import struct
from functools import partial
from itertools import product

import numpy as np
import pytest

import lately
from golden.make import ANSWERS, FILTERS, HERE, answers
from lately._families import FAMILIES
from own_process import run
from support.round_trips import ROUND_TRIPS, out_of_band
from support.threads import together

HEADER = 64


def go_on(f, turns=1):
    """Make every call that writes, for `turns` full rotations of the ring."""
    if f.lateness is None:
        n = (f.capacity + min(f.slack, f.capacity)) * turns  # a stable filter has no bound
        f.insert(np.arange(10**6, 10**6 + n))
        f.duplicated(np.arange(10**6, 10**6 + n) // 3)
        f.duplicated(np.arange(10**6, 10**6 + n) // 5, refresh=False)
        f.add("the last")
    else:
        seconds = (f.window + f.slack + f.lateness) * turns
        at = 1_790_000_000 + np.linspace(0, seconds, 300)
        f.insert(np.arange(300), at=at)
        f.duplicated(np.arange(300) // 3, at=at + seconds, refresh=False)
        f.add("the last", at=float(at[-1] + 2 * seconds))
    return f.to_bytes()


# ---------------------------------------------------------------------------------------------------- golden files


@pytest.mark.parametrize("name", FILTERS)
def test_a_new_filter_equals_its_golden_file_byte_for_byte(name):
    golden = (HERE / f"{name}.lately").read_bytes()
    assert len(golden) <= 768 + 4096
    assert FILTERS[name]().to_bytes() == golden


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("mmap", [False, True])
def test_golden_files_answer_as_recorded_and_go_on(name, mmap):
    f = lately.open(HERE / f"{name}.lately", mmap=mmap)
    assert answers(f) == json.loads(ANSWERS.read_text())[name]
    assert f.to_bytes() == (HERE / f"{name}.lately").read_bytes()
    assert go_on(f) == go_on(FILTERS[name]())


# ---------------------------------------------------------------------------------------------------- round trips


def by_the_clock(family, max_ahead):
    """A filter for times that lie up to `max_ahead` after the clock."""
    f = FAMILIES[family].make("1h", fpr=0.01, capacity=100, max_ahead=max_ahead)
    f.insert(["x"], at=1000.0)
    return f


BY_THE_CLOCK = "age-partitioned", "guarded-epoch-transposed", "timing-growing", "aged-cuckoo", "time-limited"
AHEAD = [*product(BY_THE_CLOCK, ("90 s", None)), ("timing", "1 d"), ("timing", "0 s")]
AHEAD = {f"{family}, max_ahead={ahead}": partial(by_the_clock, family, ahead) for family, ahead in AHEAD}


# Golden files show it of every family. The ways of Python differ by how the cells lie in memory.
WAYS = AHEAD | {
    name: FILTERS[name] for name in ("plain", "limited", "grown", "swamp", "aged_cuckoo_chain", "exact", "exact_timed")
}


@pytest.mark.parametrize("name", WAYS)
def test_a_saved_filter_goes_on_exactly_where_it_stopped(name, tmp_path):
    f = WAYS[name]()
    before, after = f.to_bytes(), go_on(f.copy(), turns=2)
    assert after != before
    for way, round_trip in ROUND_TRIPS.items():
        again = round_trip(f, tmp_path / "f.lately")
        assert type(again) is type(f), way
        assert again.to_bytes() == before, way
        assert (repr(again), again.parameters, again.fpr, again.slack) == (repr(f), f.parameters, f.fpr, f.slack), way
        assert again.max_ahead == f.max_ahead, way
        assert go_on(again, turns=2) == after, way
        assert f.to_bytes() == before, f"{way}: what was read writes nothing back"
    others = {way: round_trip(f, tmp_path / "f.lately") for way, round_trip in ROUND_TRIPS.items()}
    assert go_on(f, turns=2) == after
    for way, other in others.items():
        assert other.to_bytes() == before, f"{way}: what is written to the first is not seen by the second"


def test_out_of_band_nothing_is_copied():
    f = lately.AgePartitionedBloomFilter(window=3_000_000, fpr=0.001)
    f.insert(np.arange(100))
    again, band, buffers = out_of_band(f)
    assert len(band) < 400
    assert sum(memoryview(b).nbytes for b in buffers) == f.nbytes > 8_000_000
    _, _, second = out_of_band(f)
    _, _, of_the_copy = out_of_band(again)
    where = {np.frombuffer(b[0], np.uint8).ctypes.data for b in (buffers, second, of_the_copy)}
    assert len(where) == 1, "the filter, its pickle and what was read from it share one memory"
    assert memoryview(buffers[0]).readonly
    again.add("x")
    _, _, moved = out_of_band(again)
    assert np.frombuffer(moved[0], np.uint8).ctypes.data not in where
    assert "x" not in f


def test_the_first_write_after_pickling_leaves_the_pickled_buffers_alone():
    f = FILTERS["plain"]()
    before = f.to_bytes()
    buffers = []
    band = pickle.dumps(f, protocol=5, buffer_callback=buffers.append)
    go_on(f)
    assert pickle.loads(band, buffers=buffers).to_bytes() == before


def test_bytes_outlive_the_object_they_were_read_from():
    f = lately.from_bytes(bytes(FILTERS["plain"]().to_bytes()))
    g = pickle.loads(pickle.dumps(f, protocol=5))
    expected = answers(FILTERS["plain"]())
    del f
    assert answers(g) == expected


# ---------------------------------------------------------------------------------------------------- files


def test_a_mapped_filter_is_written_to_in_memory_only(tmp_path):
    path = tmp_path / "f.lately"
    f = FILTERS["blocks"]()
    f.save(path)
    saved = path.read_bytes()
    first, second = (lately.open(path, mmap=True) for _ in range(2))
    together(lambda: first.insert(range(400)), lambda: second.insert(range(9**6, 9**6 + 400)))
    assert path.read_bytes() == saved
    expected = [f.copy(), f.copy()]
    expected[0].insert(range(400))
    expected[1].insert(range(9**6, 9**6 + 400))
    assert [first.to_bytes(), second.to_bytes()] == [g.to_bytes() for g in expected]


@pytest.mark.parametrize("name", FILTERS)
def test_a_mapped_file_that_is_not_verified_answers_as_it_stands(name, tmp_path):
    path = tmp_path / "f.lately"
    f = FILTERS[name]()
    f.save(path)
    assert answers(lately.open(path, mmap=True, verify=False)) == answers(f)
    with pytest.raises(ValueError, match="verify=False needs mmap=True"):
        lately.open(path, verify=False)
    # The header is compared in any case.
    saved = path.read_bytes()
    path.write_bytes(saved[:70] + bytes([saved[70] ^ 1]) + saved[71:])
    with pytest.raises(lately.FormatError, match="damaged"):
        lately.open(path, mmap=True, verify=False)
    # Damage to the cells is found by opening the file once more.
    path.write_bytes(saved[:-1] + bytes([saved[-1] ^ 1]))
    if name == "blocks":  # whose cells may be of any bits
        assert lately.open(path, mmap=True, verify=False).inserted == f.inserted
    with pytest.raises(lately.FormatError, match="the cells are damaged"):
        lately.open(path, mmap=True)


def test_replacing_the_file_of_a_mapped_filter_is_safe(tmp_path):
    path = tmp_path / "f.lately"
    f = FILTERS["blocks"]()
    f.save(path)
    mapped = lately.open(path, mmap=True)
    before = f.to_bytes()
    go_on(f)
    f.save(path)
    assert mapped.to_bytes() == before
    assert lately.open(path).to_bytes() == f.to_bytes()
    mapped.save(path)  # over another, from a mapping of the one before
    assert path.read_bytes() == before


def test_save_follows_the_umask_and_leaves_nothing_else(tmp_path):
    before = os.umask(0o027)
    try:
        FILTERS["plain"]().save(tmp_path / "f.lately")
    finally:
        os.umask(before)
    assert (tmp_path / "f.lately").stat().st_mode & 0o777 == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["f.lately"]


def test_a_name_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FILTERS["plain"]().save("f.lately")
    assert lately.open("f.lately").to_bytes() == FILTERS["plain"]().to_bytes()


def test_errors_of_the_system_name_the_file(tmp_path):
    f = FILTERS["plain"]()
    missing = tmp_path / "missing" / "f.lately"
    with pytest.raises(FileNotFoundError) as caught:
        f.save(missing)
    assert caught.value.filename == str(missing)
    with pytest.raises(FileNotFoundError) as caught:
        lately.open(missing)
    assert caught.value.filename == str(missing)
    assert caught.value.strerror == "No such file or directory"
    with pytest.raises(IsADirectoryError) as caught:
        f.save(tmp_path)
    assert caught.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match=r"/proc/f\.lately"):
        f.save("/proc/f.lately")
    with pytest.raises(OSError, match="Invalid argument"):
        f.save("a\0b")
    with pytest.raises(TypeError):
        f.save(3)


@pytest.mark.parametrize("mmap", [False, True])
def test_a_file_of_another_program_is_a_format_error_that_names_it(tmp_path, mmap):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("no filter\n" * 100)
    (tmp_path / "cut").write_bytes(FILTERS["plain"]().to_bytes()[:-1])
    for path in (tmp_path, "/dev/zero", *(tmp_path / name for name in ("fifo", "empty", "text", "cut"))):
        with pytest.raises(lately.FormatError, match=str(path)):
            lately.open(path, mmap=mmap)


# ---------------------------------------------------------------------------------------------------- hostile bytes


# The key b"..." is hashed by XXH3-64 with the 8th output of SplitMix64, which is 0 when its state is: plain XXH3-64.
PLAIN_XXH3 = -8 * 0x9E3779B97F4A7C15 % 2**64


def seal(data):
    """Make both sums right, where the lengths place them: the bytes that they guard lie behind them."""

    def xxh3(*parts):
        return int(lately.hash_keys([b"".join(parts)], seed=PLAIN_XXH3)[0])

    cells = HEADER + struct.unpack_from("<Q", data, 24)[0]
    if cells <= len(data):
        struct.pack_into("<Q", data, 40, xxh3(data[cells:]))
        struct.pack_into("<Q", data, 56, xxh3(data[:56], data[HEADER:cells]))


def test_every_way_to_read_rejects_damage_as_a_format_error(tmp_path):
    """The core's tests find all damage, under right sums too."""
    from_parts, (preamble, _), *_ = FILTERS["plain"]().__reduce_ex__(5)
    saved, path = FILTERS["plain"]().to_bytes(), tmp_path / "f"
    for place in (9, 30, len(preamble) + 5):
        data = bytearray(saved)
        data[place] ^= 255
        path.write_bytes(data)
        head, rest = bytes(data[: len(preamble)]), bytes(data[len(preamble) :])
        for read in (
            lambda data=data: lately.from_bytes(bytes(data)),
            lambda: lately.open(path),
            lambda: lately.open(path, mmap=True),
            lambda data=data: lately.open(io.BytesIO(data)),
            lambda head=head, rest=rest: from_parts(head, pickle.PickleBuffer(rest)),
        ):
            with pytest.raises(lately.FormatError):
                read()


def test_pickles_of_other_things_are_type_errors():
    call = FILTERS["fresh"]().__reduce_ex__(5)[0]
    preamble, cells = FILTERS["fresh"]().__reduce_ex__(5)[1]
    for arguments in [
        ("x", cells),
        (preamble, "x"),
        (preamble, None),
        (None, cells),
        (preamble, np.zeros(3)),
        (preamble,),
    ]:
        with pytest.raises((TypeError, BufferError)):
            call(*arguments)
    with pytest.raises(lately.FormatError):
        call(preamble, b"")
    with pytest.raises(lately.FormatError):
        call(b"", cells)


def test_lengths_that_are_not_there_allocate_nothing(tmp_path):
    """With 64 MiB of address space left, every length up to 2^64 is rejected as damage, not for lack of memory."""
    for i, (length, cells) in enumerate([(128, 2**40), (128, 2**63), (2**40, 1280), (2**64 - 64, 0), (128, 2**64 - 8)]):
        data = bytearray((HERE / "plain.lately").read_bytes())
        struct.pack_into("<QQ", data, 24, length, cells)
        struct.pack_into("<Q", data, HEADER + 9 * 8, cells // 2)
        seal(data)
        (tmp_path / f"{i}.lately").write_bytes(data)
    lines = run(
        """
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)
        for name in sorted(os.listdir(sys.argv[1])):
            path = os.path.join(sys.argv[1], name)
            data = open(path, "rb").read()
            readers = lately.from_bytes, lately.open, lambda path: lately.open(path, mmap=True)
            for read, source in zip(readers, (data, path, path)):
                try:
                    read(source)
                except lately.FormatError:
                    print("refused")
        """,
        tmp_path,
    )
    assert lines == ["refused"] * 15
