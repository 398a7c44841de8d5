"""`save`: what stands at its place, whose it is, and what a kill leaves behind."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest

import lately
from apart import run


def saved(n=1):
    f = lately.AgePartitionedBloomFilter(1000, 0.01)
    f.insert(range(n))
    return f


def names(folder):
    return [file.name for file in folder.iterdir()]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 7))])
def test_what_is_no_regular_file_is_refused_and_stays(make, tmp_path):
    path = tmp_path / "place"
    try:
        make(path)
    except PermissionError:
        pytest.skip("only root makes devices")
    before = path.lstat()
    with pytest.raises(OSError, match="no regular file") as caught:
        saved().save(path)
    assert caught.value.filename == str(path)
    after = path.lstat()
    assert (after.st_mode, after.st_ino, after.st_rdev) == (before.st_mode, before.st_ino, before.st_rdev)
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(OSError, match="no regular file"):
        saved().save(link)
    assert link.is_symlink()
    assert sorted(names(tmp_path)) == ["link", "place"]


def test_links_are_followed(tmp_path):
    (tmp_path / "there").mkdir()
    target, near, far = tmp_path / "there" / "f.lately", tmp_path / "near", tmp_path / "far"
    near.symlink_to("there/f.lately")
    far.symlink_to(near)
    # A link to nothing yet, and to something.
    for n in (1, 2):
        saved(n).save(far)
        assert near.is_symlink()
        assert far.is_symlink()
        assert lately.open(target).inserted == n
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(OSError, match="links"):
        saved().save(circle)
    assert names(tmp_path / "there") == ["f.lately"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666])
def test_the_mode_is_kept_from_the_first_byte_on(mode, tmp_path):
    path = tmp_path / "f.lately"
    saved().save(path)
    path.chmod(mode)
    saved(2).save(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert lately.open(path).inserted == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(tmp_path):
    path = tmp_path / "f.lately"
    saved().save(path)
    os.chown(path, 1234, 4321)
    saved(2).save(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_kills_leave_no_names_behind(tmp_path):
    path = tmp_path / "f.lately"
    saved().save(path)
    code = """if True:
        import lately, sys
        f = lately.AgePartitionedBloomFilter(5_000_000, 0.01)
        f.add(1)
        print("ready", flush=True)
        while True:
            f.save(sys.argv[1])
        """
    for i in range(12):
        with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            time.sleep(0.003 * i)
            child.send_signal(signal.SIGKILL)
        assert lately.open(path).inserted == 1
        assert names(tmp_path) == ["f.lately"]


def test_a_signal_ends_a_save_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "f.lately"
    saved().save(path)
    lines = run(
        """
        f = lately.AgePartitionedBloomFilter(50_000_000, 0.01)
        class Enough(Exception):
            pass
        def enough(*_):
            raise Enough
        signal.signal(signal.SIGALRM, enough)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        try:
            f.save(sys.argv[1])
        except Enough:
            print("stopped", lately.open(sys.argv[1]).inserted)
        """,
        path,
    )
    assert lines == ["stopped 1"]
    assert names(tmp_path) == ["f.lately"]
