import gzip
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lately
from lately.cli.outputs import Replacement
from support.command import finish, some_lines, start, temporaries
from support.parquet import parquet


def test_output_replaces_its_own_input_and_keeps_mode_and_link(tmp_path, dedupe):
    path, link = tmp_path / "a.txt", tmp_path / "link"
    path.write_bytes(b"a\nb\na\n")
    path.chmod(0o640)
    link.symlink_to(path)
    assert dedupe(path, "--window", 9, "--output", link).status == 0
    assert link.is_symlink()
    assert path.read_bytes() == b"a\nb\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.iterdir()) == [path, link]


def test_impossible_outputs_are_errors(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\n")
    for target, message in [(tmp_path / "no" / "o", "No such file"), (tmp_path, "Is a directory")]:
        ended = dedupe(tmp_path / "a.txt", "--window", 9, "--output", target, "--state", tmp_path / "s")
        assert ended.status == 1
        assert f"cannot write {target}: {message}" in ended.err
        assert not (tmp_path / "s").exists()


def test_a_named_pipe_or_device_is_written_to_and_not_replaced(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\nb\na\n")
    pipe, got = tmp_path / "pipe.gz", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert dedupe(tmp_path / "a.txt", "--window", 9, "--output", pipe).status == 0
    assert pipe.is_fifo()
    reader.join()
    assert gzip.decompress(got[0]) == b"a\nb\n"


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_standard_output_by_another_name(tmp_path, name):
    if name == "link":
        name = tmp_path / "link"
        name.symlink_to("/dev/stdout")
    ended = finish(start("--window", 9, "-o", name), b"a\nb\na\n")
    assert (ended.status, ended.out) == (0, b"a\nb\n")
    target = tmp_path / "o"
    with target.open("wb") as file:
        file.write(b"head\n")
        file.flush()
        inode = target.stat().st_ino
        assert finish(start("--window", 9, "-o", name, stdout=file), b"a\nb\na\n").status == 0
    assert (target.read_bytes(), target.stat().st_ino) == (b"head\na\nb\n", inode)


def test_a_descriptor_of_the_shell(tmp_path):
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "lately", "dedupe", "--window", "9", "-o", f"/dev/fd/{writing}", "--quiet"]
    ended = subprocess.run(command, input=b"a\na\n", pass_fds=[writing], capture_output=True)
    os.close(writing)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"a\n"


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full"])
def test_a_device_stays_one(tmp_path, device):
    ended = finish(start("--window", 9, "-o", device, "--state", tmp_path / "s"), b"a\n")
    assert ended.status == (1 if device == "/dev/full" else 0)
    assert Path(device).is_char_device()


def test_full_standard_output(tmp_path):
    with Path("/dev/full").open("wb") as full:
        ended = finish(start("--window", 9, "--state", tmp_path / "s", stdout=full), b"a\nb\n")
    assert ended.status == 1
    assert ended.err == "lately: error: cannot write standard output: No space left on device\n"
    assert not (tmp_path / "s").exists()


def shell(command, *arguments):
    lately = [sys.executable, "-m", "lately", *map(str, arguments)]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(["sh", "-c", command, *lately], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [["--help"], ["plan", "--window", "1000"]])
@pytest.mark.parametrize(
    ("target", "reason"), [("/dev/full", "No space left on device"), ("&-", "Bad file descriptor")]
)
def test_text_that_cannot_be_written_is_an_error_of_one_line(arguments, target, reason):
    ended = shell(f'"$0" "$@" >{target}', *arguments)
    assert (ended.returncode, reason in ended.stderr, ended.stderr.count("\n")) == (1, True, 1)


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", "\\xe4"), ("utf-8", "ä")])
def test_keys_that_the_terminal_cannot_show_are_escaped(tmp_path, monkeypatch, encoding, shown):
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    lately.Filter(9, 0.01).save(tmp_path / "f")
    assert shell('"$0" "$@"', "query", tmp_path / "f", "ä").stdout == f"new\t{shown}\n"


def test_a_report_that_cannot_be_written_leaves_the_status(tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    ended = shell('"$0" "$@" 2>/dev/full', "dedupe", tmp_path / "a.txt", "--window", 9)
    assert (ended.returncode, ended.stdout) == (0, "a\n")


def test_no_file_of_a_run_gets_the_descriptor_of_a_closed_stream(tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    options = ("--window", 9, "--state", tmp_path / "s")
    ended = shell('"$0" "$@" >&-', "dedupe", tmp_path / "a.txt", *options, "--dropped", tmp_path / "d")
    assert (ended.returncode, ended.stderr) == (
        1,
        "lately: error: cannot write standard output: Bad file descriptor\n",
    )
    ended = shell('"$0" "$@" <&-', "dedupe", *options)
    assert (ended.returncode, ended.stderr) == (1, "lately: error: standard input: Bad file descriptor\n")
    assert shell('"$0" "$@" <&- >&- 2>&-', "dedupe", tmp_path / "a.txt", *options, "-o", tmp_path / "o").returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "o", "s", "s.json"]


@pytest.mark.parametrize("extension", ["", ".gz", ".zst", ".parquet"])
def test_a_full_disk_leaves_the_old_output(tmp_path, extension):
    rng = random.Random(0)
    values = [rng.getrandbits(64) for _ in range(100_000)]
    if extension == ".parquet":
        source = tmp_path / "a.parquet"
        parquet(source, a=pa.array(values, pa.uint64()))
    else:
        source = tmp_path / "a"
        source.write_text("".join(f"{value}\n" for value in values))
    target, state = tmp_path / f"o{extension}", tmp_path / "s"
    target.write_bytes(b"as it was")
    ended = finish(start(source, "--window", 9, "-o", target, "--state", state, largest_file=100_000))
    assert ended.status == 1
    assert ended.err == f"lately: error: cannot write {target}: File too large\n"
    assert target.read_bytes() == b"as it was"
    assert not state.exists()
    assert not temporaries(tmp_path)


def test_a_full_disk_leaves_the_old_state(tmp_path):
    target, state = tmp_path / "o", tmp_path / "s"
    options = ("--window", 100_000, "--state", state, "--output", target)
    assert finish(start(*options), b"a\nb\n").status == 0
    before = state.read_bytes()
    ended = finish(start(*options, largest_file=len(before) // 2), b"b\nc\n")
    assert ended.status == 1
    assert f"cannot write --state {state}: File too large" in ended.err
    assert state.read_bytes() == before
    assert target.read_bytes() == b"a\nb\n"
    assert sorted(tmp_path.iterdir()) == [target, state, tmp_path / "s.json"]


def test_state_follows_output(tmp_path, dedupe, monkeypatch):
    """A crash between the two writes records again. The other order would lose them."""
    (tmp_path / "a.txt").write_bytes(b"a\n")
    seen = []
    replace = Path.replace

    def watch(self, target):
        seen.append(target.name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watch)
    assert dedupe(tmp_path / "a.txt", "--window", 9, "-o", tmp_path / "o", "--state", tmp_path / "s").status == 0
    assert seen == ["s.json", "o", "s"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("target", ["o", "o.gz", "-"])
def test_interrupted(tmp_path, target, number):
    path, state = tmp_path / "o", tmp_path / "s"
    assert finish(start("--window", 9, "--state", state, "-o", path), b"old\n").status == 0
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    output = target if target == "-" else tmp_path / target
    process = start("--state", state, "-o", output)
    # More than a batch; for a pipe without a reader yet, less than it holds. The end does not come.
    process.stdin.write(b"".join(some_lines(5_000 if target == "-" else 70_000)))
    process.stdin.flush()
    if target == "-":
        assert select.select([process.stdout], [], [], 60)[0]
    else:
        deadline = time.monotonic() + 60
        while not temporaries(tmp_path):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    process.send_signal(number)
    ended = finish(process)
    assert ended.status == 128 + number
    assert ended.err == "lately: interrupted\n"
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_second_signal_leaves_no_temporary_file(tmp_path, dedupe, monkeypatch):
    (tmp_path / "a.txt").write_bytes(b"a\n")

    def close(self):
        self.file.close()
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Replacement, "finish", lambda _: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(Replacement, "close", close)
    assert dedupe(tmp_path / "a.txt", "--window", 9, "-o", tmp_path / "o").status == 143
    assert list(tmp_path.iterdir()) == [tmp_path / "a.txt"]


@pytest.mark.parametrize("count", [1, 200_000])
def test_a_closed_pipe(tmp_path, count):
    source, state = tmp_path / "a.txt", tmp_path / "s"
    source.write_text("".join(f"{i}\n" for i in range(count)))
    reading, writing = os.pipe()
    os.close(reading)
    process = start(source, "--window", 9, "--state", state, stdout=writing)
    os.close(writing)
    ended = finish(process)
    assert ended.status == 141
    assert ended.err == ""
    assert not state.exists()
