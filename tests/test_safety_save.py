"""`save`: which files it replaces, their owner and mode, and what a killed process leaves behind."""

import os
import stat

import pytest

import lately
from own_process import run


def saved(n=1):
    f = lately.AgePartitionedBloomFilter(1000, 0.01)
    f.insert(range(n))
    return f


def names(folder):
    return [file.name for file in folder.iterdir()]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 7))])
def test_a_path_of_no_regular_file_is_rejected_and_stays(make, tmp_path):
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


def test_a_new_file_with_a_secret_is_readable_by_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        secret = lately.Swamp(100, 0.01, seed="random")
        secret.save(tmp_path / "secret.lately")
        lately.Swamp(100, 0.01, seed=5).save(tmp_path / "public.lately")
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("secret.lately", "public.lately")}
    assert modes == {"secret.lately": 0o600, "public.lately": 0o666}
    # Who has given others the right to read it has meant to.
    (tmp_path / "secret.lately").chmod(0o640)
    secret.save(tmp_path / "secret.lately")
    assert stat.S_IMODE((tmp_path / "secret.lately").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(tmp_path):
    path = tmp_path / "f.lately"
    saved().save(path)
    os.chown(path, 1234, 4321)
    saved(2).save(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


# Children of one process, so that they begin at once. Those struck at a step are killed by the system when they are
# about to make that system call (a filter of seccomp: load its number, compare, kill or allow).
KILLS = """
import ctypes, os, random, signal, struct, sys, time
import lately

CALLS = {"openat": 257, "fchmod": 91, "write": 1, "fsync": 74, "linkat": 265, "rename": 82, "close": 3, "readlink": 89}
KILL, ALLOW = 0x80000000, 0x7FFF0000

def strike_at(call):
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, CALLS[call]), (0x06, 0, 0, KILL), (0x06, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0

def filter_of(version, window=20_000):
    f = lately.AgePartitionedBloomFilter(window, 0.01)
    f.insert(range(version))
    return f

folder, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
path, rng = os.path.join(folder, "f.lately"), random.Random(seed)
struck, version = {}, 0
for number in range(count):
    aimed = number % 2 == 0 and os.uname()[::4] == ("Linux", "x86_64")
    call = sorted(CALLS)[number // 2 % len(CALLS)]
    if rng.random() < 0.1 and version:
        os.remove(path)
        version = 0
    # A file of megabytes, so that a kill comes within its write.
    large = not aimed and number % 8 == 1
    files = [filter_of(version + step, 2_000_000 if large else 20_000) for step in (1, 2, 3)]
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        if aimed:
            strike_at(call)
        for file in files:
            file.save(path)
            if not aimed:
                os.write(write_end, b".")
        os._exit(0)
    os.close(write_end)
    if not aimed:
        time.sleep(rng.uniform(0, 0.03 if large else 0.01))
        os.kill(child, signal.SIGKILL)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    done = len(os.read(read_end, 9))
    os.close(read_end)
    now = lately.open(path).inserted if os.path.exists(path) else 0
    if ended == 0:
        assert now == version + 3, (now, version, call)
    else:
        kind = call if aimed else "at random"
        struck[kind] = struck.get(kind, 0) + 1
        # What has been saved is there, and what comes after it may be.
        assert version + done <= now <= version + min(done + 1, 3), (now, version, done, call)
    left = set(os.listdir(folder)) - {"f.lately"}
    assert not left or ended != 0 and len(left) == 1, left
    if left:
        # A kill at the only step that leaves a name: the next one to save takes it away.
        filter_of(now).save(path)
        assert os.listdir(folder) == ["f.lately"], os.listdir(folder)
        struck["left a name"] = struck.get("left a name", 0) + 1
    version = now
print(struck)
"""


def test_kills_at_each_step_leave_the_old_file_or_the_new(tmp_path):
    (struck,) = run(KILLS, tmp_path, 1, 40)
    steps = {"linkat", "rename", "fsync", "write", "openat"} if os.uname()[::4] == ("Linux", "x86_64") else set()
    assert steps <= set(eval(struck))


@pytest.mark.campaign
def test_a_campaign_of_kills_during_save(tmp_path, capsys):
    (struck,) = run(KILLS, tmp_path, 2, 1500, seconds=1800)
    kinds = eval(struck)
    left = kinds.pop("left a name", 0)
    assert sum(kinds.values()) >= 1000
    with capsys.disabled():
        print(
            f"\n{sum(kinds.values())} kills, {struck}: the old file or the new, {left} times with a name removed later"
        )


def test_two_saves_to_one_path_both_succeed(tmp_path):
    path = tmp_path / "f.lately"
    lines = run(
        """
        path = sys.argv[1]
        fs = [lately.AgePartitionedBloomFilter(1000, 0.01) for _ in range(4)]
        for n, f in enumerate(fs):
            f.insert(range(n + 1))
        children = []
        for f in fs:
            child = os.fork()
            if child == 0:
                for _ in range(100):
                    f.save(path)
                    assert lately.open(path).inserted in (1, 2, 3, 4)
                os._exit(0)
            children.append(child)
        print([os.waitpid(child, 0)[1] for child in children])
        """,
        path,
    )
    assert lines == ["[0, 0, 0, 0]"]
    assert names(tmp_path) == ["f.lately"]


def test_a_full_disk_is_an_error_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "f.lately"
    saved().save(path)
    lines = run(
        """
        import errno
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        f = lately.AgePartitionedBloomFilter(100_000, 0.01)
        for size in (0, 1, 64, 4096, f.nbytes - 1):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            try:
                f.save(sys.argv[1])
            except OSError as error:
                print(error.errno == errno.EFBIG, error.filename, lately.open(sys.argv[1]).inserted)
        f.add(1)
        assert 1 in f
        """,
        path,
    )
    assert lines == [f"True {path} 1"] * 5
    assert names(tmp_path) == ["f.lately"]


def test_a_folder_without_permission_is_an_error(tmp_path):
    path = tmp_path / "f.lately"
    saved().save(path)
    lines = run(
        """
        import tempfile
        folder = os.path.dirname(sys.argv[1])
        f, fresh = lately.open(sys.argv[1]), os.path.join(folder, "fresh")
        if os.geteuid() == 0:  # which may write anywhere
            up = folder
            while up != tempfile.gettempdir():
                os.chmod(up, 0o755)
                up = os.path.dirname(up)
            os.setuid(65534)
        else:
            os.chmod(folder, 0o555)
        for place in (sys.argv[1], fresh):
            try:
                f.save(place)
            except PermissionError as error:
                print(error.filename == place, lately.open(sys.argv[1]).inserted)
        """,
        path,
    )
    assert lines == ["True 1"] * 2
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
