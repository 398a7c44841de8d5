"""One filter for several processes: `lately.open(path, shared=True)`."""

import errno
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lately
from own_process import run
from support import pages
from support.layouts import CLAIMS, LAYOUTS

# The file ends with places for claims, which are free.
GOLDEN = (Path(__file__).parent / "golden" / "shared.lately").read_bytes() + bytes(CLAIMS)


@pytest.fixture(params=LAYOUTS)
def path(request, tmp_path):
    path = tmp_path / "seen.lately"
    LAYOUTS[request.param](10_000, 0.001).save(path)
    return path


def test_a_key_that_one_process_inserts_all_processes_see(path):
    ours, theirs = (lately.open(path, shared=True) for _ in range(2))
    assert [ours.seen("a"), theirs.seen("a"), ours.seen("a")] == [False, True, True]
    ours.add("b")
    ours.insert(range(30_000))
    ours.update(range(30_000, 40_000), threads=2)
    assert "b" not in theirs
    assert theirs.inserted == ours.inserted == 40_004
    assert theirs.query(range(30_000, 40_000)).all()
    new = ~theirs.duplicated(range(39_999, 40_010))
    assert new.tolist() == [False] + [True] * 10
    assert ours.query(range(40_000, 40_010), threads=2).all()
    assert (ours.fill == theirs.fill).all()
    assert ours.false_positive_rate() == theirs.false_positive_rate() > 0


def test_answers_are_those_of_a_filter_of_one_process(path):
    alone, ours, theirs = lately.open(path), lately.open(path, shared=True), lately.open(path, shared=True)
    rng = np.random.default_rng(1)
    for i in range(200):
        keys = rng.integers(0, 30_000, rng.integers(1, 700))
        answers = (ours, theirs)[i % 2].duplicated(keys)
        assert (answers == alone.duplicated(keys)).all()
        queried = rng.integers(0, 30_000, 500)
        assert ((theirs, ours)[i % 2].query(queried) == alone.query(queried)).all()
    assert ours.copy() == alone


def test_windows_of_time_go_by_the_clock_of_all(tmp_path):
    path = tmp_path / "seen.lately"
    lately.AgePartitionedBloomFilter("10min", 0.001, capacity=10_000).save(path)
    ours, theirs = (lately.open(path, shared=True) for _ in range(2))
    assert [f.seen("a", at=at) for f, at in ((ours, 0), (theirs, 599), (ours, 2000))] == [False, True, False]
    assert ours.latest == theirs.latest == np.datetime64(2000, "s")
    with pytest.raises(ValueError, match="before the latest time seen"):
        theirs.add("b", at=1990)
    assert theirs.inserted == 3


def test_a_copy_and_what_is_saved_elsewhere_are_filters_of_their_own(path, tmp_path):
    shared = lately.open(path, shared=True)
    shared.insert(range(25_000))
    copy = shared.copy()
    shared.save(tmp_path / "copy.lately")
    saved, opened = lately.open(tmp_path / "copy.lately", mmap=True), lately.open(path)
    bytes_ = shared.to_bytes()
    shared.add("a")
    for one in (copy, saved, opened, lately.from_bytes(bytes_), copy | saved):
        assert one.inserted == 25_000
        assert "a" not in one
        assert one == copy
        assert one.query(range(15_000, 25_000)).all()
    opened.add("b")
    assert "b" not in shared
    # What went in before the file was shared is there too.
    lately.open(tmp_path / "copy.lately", shared=True).add("c")
    again = lately.open(tmp_path / "copy.lately")
    assert again.inserted == 25_001
    assert again.query(range(15_001, 25_000)).all()


def test_pickle_takes_the_path_along(path, tmp_path, monkeypatch):
    monkeypatch.chdir(path.parent)
    shared = lately.open(path.name, shared=True)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(shared, protocol)
        assert len(data) < 500
        same = pickle.loads(data)
        same.add(protocol)
        assert protocol in shared
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(data)


def test_calls_that_would_separate_a_shared_filter_are_rejected(path):
    f = lately.open(path, shared=True)
    f.add("a")
    other = f.copy()
    with pytest.raises(ValueError, match="cannot be cleared"):
        f.clear()
    with pytest.raises(ValueError, match="cannot merge into a filter that processes share"):
        f |= other
    with pytest.raises(lately.FormatError, match="processes share this file"):
        lately.open(path, mmap=True)
    with path.open("rb") as file, pytest.raises(lately.FormatError, match="processes share this file"):
        lately.open(file)
    with pytest.raises(ValueError, match="needs the path"), path.open("rb") as file:
        lately.open(file, shared=True)
    with pytest.raises(ValueError, match="a mapped file must not change"):
        lately.open(path, mmap=True, shared=True)
    assert f.inserted == 1
    other.save(path)
    for call in (lambda: f.add("b"), lambda: f.insert(["b"]), f.copy):
        with pytest.raises(OSError, match="replaced, moved or removed"):
            call()
    assert lately.open(path, shared=True).inserted == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: lately.TimingBloomFilter(1000, 0.01),
        lambda: lately.TimeLimitedBloomFilter("1min", 0.01, capacity=100),
        lambda: lately.Swamp(1000, 0.01),
        lambda: lately.ExactFilter(1000),
        lambda: lately.baselines.CountingBloomFilter(1000, 0.01),
    ],
)
def test_other_families_are_rejected(make, tmp_path):
    make().save(tmp_path / "f.lately")
    before = (tmp_path / "f.lately").read_bytes()
    with pytest.raises(ValueError, match=r"processes can share an AgedCuckooFilter, AgePart.*this one is of the"):
        lately.open(tmp_path / "f.lately", shared=True)
    assert (tmp_path / "f.lately").read_bytes() == before


def test_the_default_of_a_window_of_time_is_shared_with_room_for_a_wave_at_each_end(tmp_path):
    path = tmp_path / "f.lately"
    lately.Filter("100s", 1e-3, capacity=20_000).save(path)
    ours, theirs = (lately.open(path, shared=True) for _ in range(2))
    for second, f in ((0, ours), (99, theirs), (100, ours), (198, theirs)):
        at = 1000 + second
        assert f.duplicated(np.arange(10_000) + 10_000 * second, at=at).mean() <= 0.0015
    assert theirs.query(np.arange(10_000) + 990_000, at=1198).all()
    assert ours.query(np.arange(1e8, 1.001e8), at=1198).mean() < 0.0015


def test_the_default_is_shared_only_where_its_size_is_fixed(tmp_path):
    path = tmp_path / "f.lately"
    lately.Filter("100s", 1e-3).save(path)
    with pytest.raises(ValueError, match="build it with capacity or nbytes"):
        lately.open(path, shared=True)
    f = lately.Filter("100s", 1e-3, capacity=1000)
    f.add(1)
    f.save(path)
    with pytest.raises(ValueError, match="before keys are inserted, or build the filter with nbytes"):
        lately.open(path, shared=True)
    f = lately.Filter("100s", nbytes=10_000, capacity=1000)
    f.add(1)
    f.save(path)
    assert 1 in lately.open(path, shared=True)


def test_no_reader_misses_a_key_that_a_writer_moves_or_inserts_again(tmp_path):
    """The table is so full that every other insertion moves an entry. Each key comes twice."""
    full = {"fingerprint_bits": 20, "epochs": 64, "pages": 1, "lines": 148}
    lately.AgedCuckooFilter.from_parameters(5000, **full).save(tmp_path / "f.lately")
    code = """
        import itertools
        f, hundred = lately.open(sys.argv[1], shared=True), np.arange(100)
        # A hundred new keys, and then a hundred that were new 1000 insertions before.
        parts = (np.concatenate([hundred + 100 * i, hundred + 100 * i - 500]) for i in itertools.count())
        for i in range(50):
            f.insert(next(parts))
        child = os.fork()
        while not child:
            f.insert(next(parts))
        missed = looked_up = 0
        while looked_up < 2_000_000:
            # Of 200 insertions at a time those before the last one, which may be counted before it is inserted.
            newest = (f.inserted - 1) // 200 * 100
            keys = np.arange(newest - 1000, newest)
            found = f.query(keys)
            live = keys >= f.inserted // 2 - 2000
            missed, looked_up = missed + int((live & ~found).sum()), looked_up + int(live.sum())
        os.kill(child, signal.SIGKILL)
        print(missed, f.inserted)
    """
    ((missed, inserted),) = [map(int, line.split()) for line in run(code, tmp_path / "f.lately", seconds=300)]
    assert missed == 0
    assert inserted > 11_000, "the child writes all the while"


def test_a_bloom_filter_is_shared_too(tmp_path):
    for partitioned in (False, True):
        lately.BloomFilter(10_000, 0.001, partitioned=partitioned).save(tmp_path / "f.lately")
        ours, theirs = (lately.open(tmp_path / "f.lately", shared=True) for _ in range(2))
        ours.insert(range(5000))
        assert theirs.query(range(5000)).all()
        assert theirs.inserted == 5000


def test_a_file_of_this_version_opens_in_every_later_one(tmp_path):
    # Made by: f = AgePartitionedBloomFilter(200, 0.01, seed=5), saved, opened as shared; f.insert(range(1000)).
    path = tmp_path / "f.lately"
    path.write_bytes(GOLDEN)
    for f in (lately.open(path), lately.open(path, shared=True)):
        assert f.inserted == 1000
        assert f.query(range(800, 1000)).all()
        assert f.query(range(100_000, 101_000)).mean() < 0.05


def test_a_damaged_file_is_rejected_or_a_legal_filter(tmp_path):
    path = tmp_path / "f.lately"
    whole = GOLDEN
    begin = 64 + int.from_bytes(whole[24:32], "little")
    for place in range(begin + 24 * 8):
        for value in (0, 0x80, 0xFF):
            if whole[place] == value:
                continue
            path.unlink(missing_ok=True)  # a file that is cut to nothing first goes to the disk when it is closed
            path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            for shared in (False, True):
                try:
                    f = lately.open(path, shared=shared)
                    f.query(range(10))
                    f.insert(range(500))
                except ValueError:
                    assert path.read_bytes()[:place] == whole[:place]
                else:
                    assert place >= begin, "header and parameters have a sum"
                    assert f.query(range(300, 500)).all()
    for cut in (0, 63, begin, begin + 100, len(whole) - 8):
        path.write_bytes(whole[:cut])
        for shared in (False, True):
            with pytest.raises(lately.FormatError):
                lately.open(path, shared=shared)


def test_many_that_make_it_shared_at_once_share_one(tmp_path):
    LAYOUTS["lines"](10_000, 0.001).save(tmp_path / "f.lately")
    code = "import sys, lately; sys.stdin.read(1); lately.open(sys.argv[1], shared=True).add(sys.argv[2])"
    command = [sys.executable, "-c", code, tmp_path / "f.lately"]
    all_ = [subprocess.Popen([*command, str(i)], stdin=subprocess.PIPE) for i in range(8)]
    for one in all_:
        one.stdin.close()
    assert [one.wait(300) for one in all_] == [0] * 8
    f = lately.open(tmp_path / "f.lately")
    assert f.inserted == 8
    assert f.query([str(i) for i in range(8)]).all()
    assert [file.name for file in tmp_path.iterdir()] == ["f.lately"]


WORKERS = """
    import multiprocessing as mp

    def work(f, number, one_by_one):
        rng = np.random.default_rng(9)
        stream = rng.integers(0, 40_000, 80_000)[number::4]
        if one_by_one:
            stream = stream[:8000]
            new = [key for key in stream.tolist() if not f.seen(key)]
        else:
            new = [key for part in np.array_split(stream, 9) for key in part[~f.duplicated(part)].tolist()]
        return new, set(stream.tolist())

    if __name__ == "__main__":
        path, method, one_by_one = sys.argv[1:]
        f = lately.open(path, shared=True)
        with mp.get_context(method).Pool(4) as pool:
            answers = pool.starmap(work, [(f, number, one_by_one == "True") for number in range(4)], chunksize=1)
        new_keys = [key for new, _ in answers for key in new]
        print(len(new_keys), len(set(new_keys)), len(set.union(*(keys for _, keys in answers))), f.inserted)
"""


@pytest.mark.parametrize(("method", "one_by_one"), [("fork", False), ("fork", True), ("spawn", False)])
def test_of_four_processes_exactly_one_sees_a_key_as_new(method, one_by_one, tmp_path):
    # No key leaves the window. By chance, 40,000 new keys at 1e-9 are reported in 4e-5 of all runs.
    lately.AgePartitionedBloomFilter(200_000, 1e-9).save(tmp_path / "f.lately")
    script = tmp_path / "work.py"
    script.write_text("import lately, numpy as np, sys\n" + "\n".join(line[4:] for line in WORKERS.splitlines()))
    command = [sys.executable, script, tmp_path / "f.lately", method, str(one_by_one)]
    new_keys, different, keys, inserted = map(int, subprocess.check_output(command, timeout=300).split())
    assert new_keys == different == keys
    assert inserted == (32_000 if one_by_one else 80_000)


def test_a_child_that_idles_holds_no_lock_of_a_parent_that_was_killed(tmp_path):
    LAYOUTS["sliced"](100_000, 0.001).save(tmp_path / "f.lately")
    run(
        """
        from support.stopped import stop_with_the_lock
        path = sys.argv[1]
        f = lately.open(path, shared=True)
        keys, children = np.arange(200_000), []
        for _ in range(5):
            read_end, write_end = os.pipe()
            parent = os.fork()
            if parent == 0:
                idle = os.fork()
                if idle == 0:
                    time.sleep(100)
                    os._exit(0)
                os.write(write_end, idle.to_bytes(8, "little"))
                while True:
                    f.insert(keys)
            children.append(int.from_bytes(os.read(read_end, 8), "little"))
            stop_with_the_lock(parent, path)
            os.kill(parent, signal.SIGKILL)
            os.waitpid(parent, 0)
            f.add("b")
            assert "b" in f
        for child in children:
            os.kill(child, signal.SIGKILL)
        """,
        tmp_path / "f.lately",
        seconds=300,
    )


def test_the_programs_of_the_page_run(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "processes.md").read_text()
    programs = [block.code for block in pages.blocks(page) if block.kind == "py"]
    for code in programs:
        (tmp_path / code.splitlines()[0].removeprefix("# ")).write_text(code)
    assert len(programs) == 3

    def python(*arguments):
        return subprocess.check_output([sys.executable, *arguments], cwd=tmp_path, timeout=300, text=True).strip()

    assert python("crawl.py") == "1273"
    # As gunicorn does: the master starts, then each worker takes requests.
    for _ in range(2):
        python("-c", "import runpy; runpy.run_path('gunicorn.conf.py')['on_starting'](None)")
    call_app = "import app; print(*app.app({'HTTP_X_EVENT_ID': 'evt_1'}, lambda status, headers: None))"
    assert [python("-c", call_app) for _ in range(3)] == ["b'done'", "b'again'", "b'again'"]


def test_threads_and_processes_at_once(tmp_path):
    lately.AgePartitionedBloomFilter(1_000_000, 1e-9).save(tmp_path / "f.lately")
    code = """
        f = lately.open(sys.argv[1], shared=True)
        child = os.fork()
        keys = np.arange(40_000)
        new_keys = []
        def work():
            new_keys.extend(key for part in np.array_split(keys, 20) for key in part[~f.duplicated(part)])
        threads = [threading.Thread(target=work) for _ in range(3)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len(new_keys) == len(set(new_keys))
        if child:
            assert os.waitpid(child, 0)[1] == 0
            print(f.inserted)
    """
    assert run(code, tmp_path / "f.lately", seconds=300) == ["240000"]


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a file")
def test_a_file_that_is_mounted_alone_is_an_error_before_anything_is_written(tmp_path):
    """As ``docker run -v ./seen.lately:/seen.lately`` does."""
    mounted, path = tmp_path / "seen.lately", tmp_path / "container.lately"
    f = lately.AgePartitionedBloomFilter(1000, 1e-3)
    f.save(mounted)
    path.touch()
    if subprocess.run(["mount", "--bind", mounted, path], capture_output=True, check=False).returncode:
        pytest.skip("only the administrator mounts files")
    try:
        for call in (lambda: f.save(path), lambda: lately.open(path, shared=True)):
            with pytest.raises(OSError, match=r"mounted alone.* mount the folder") as raised:
                call()
            assert raised.value.errno == errno.EBUSY
        # A file that is shared already need not be replaced.
        lately.open(mounted, shared=True).add("a")
        subprocess.run(["umount", path], check=True)
        subprocess.run(["mount", "--bind", mounted, path], check=True)
        assert "a" in lately.open(path, shared=True)
    finally:
        subprocess.run(["umount", path], check=True)
