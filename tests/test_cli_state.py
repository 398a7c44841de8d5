import json
import os
import random
import subprocess
import sys

import pytest

import lately
from support.command import finish, some_lines, start


def test_two_runs_are_as_good_as_one(tmp_path, dedupe):
    lines = some_lines(20_000, 15_000)
    whole = tmp_path / "whole.txt"
    whole.write_bytes(b"".join(lines))
    # With a high rate there are false positives too, and they must be the same.
    options = ("--window", 3000, "--fpr", 0.05, "--seed", 7, "--quiet")
    once = dedupe(whole, *options, "--state", tmp_path / "once")
    assert len(once.out.splitlines()) < len(lines)
    twice = []
    for part in (lines[:7001], lines[7001:]):
        (tmp_path / "part.txt").write_bytes(b"".join(part))
        given = options if not twice else ("--quiet",)  # the state knows them
        twice.append(dedupe(tmp_path / "part.txt", *given, "--state", tmp_path / "twice"))
    assert twice[0].out + twice[1].out == once.out
    assert (tmp_path / "twice").read_bytes() == (tmp_path / "once").read_bytes()


def test_two_runs_in_a_window_of_time(tmp_path, dedupe):
    rows = [f"{i},{random.Random(i).randrange(50)}\n" for i in range(4000)]
    options = ("--key", "k", "--time", "t", "--state", tmp_path / "s")
    new = ("--window", "10s", "--capacity", 10)
    out = b""
    for part, more in ((rows[:1000], new), (rows[1000:2000], ()), (rows[2000:], (*new, "--lateness", "0s"))):
        (tmp_path / "part.csv").write_text("t,k\n" + "".join(part))
        out += dedupe(tmp_path / "part.csv", *options, *more).out.removeprefix(b"t,k\n")
    (tmp_path / "whole.csv").write_text("t,k\n" + "".join(rows))
    assert b"t,k\n" + out == dedupe(tmp_path / "whole.csv", *options[:4], *new).out
    ended = dedupe(tmp_path / "part.csv", *options)  # its times are before those in the state
    assert ended.status == 1
    assert "part.csv, line 2: the time 1970-01-01T00:33:20" in ended.err


def test_options_that_contradict_the_state(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"t,k\n1,2\n")
    counted, timed, growing = tmp_path / "counted", tmp_path / "timed", tmp_path / "growing"
    made = {
        growing: ["--window", "10min", "--time", "t", "--fpr", 0.001],
        counted: ["--window", 10_000, "--fpr", 0.01, "--seed", 5],
        timed: ["--window", "10min", "--capacity", 5000, "--lateness", "5s", "--time", "t", "--fpr", 0.001],
    }
    for state, options in made.items():
        for _ in range(2):  # the same options again are no contradiction
            assert dedupe(tmp_path / "a.csv", *options, "--state", state).status == 0
    for state, option, given, has in [
        (counted, "--window", "10001", "window is 10000"),
        (counted, "--window", "10000s", "window is 10000"),
        (counted, "--fpr", "0.001", "fpr is 0.00"),
        (counted, "--seed", "6", "seed is 5"),
        (counted, "--lateness", "1s", "lateness is None"),
        (timed, "--window", "11min", "window is 600 s"),
        (timed, "--window", "600", "window is 600 s"),
        (timed, "--capacity", "5001", "capacity is 5000"),
        (timed, "--lateness", "6s", "lateness is 5 s"),
        (timed, "--fpr", "0.1", "fpr is 0.000"),
        (timed, "--seed", "1", "seed is random"),
        (growing, "--fpr", "0.1", "fpr is 0.000"),
        (counted, "--seed", "random", "seed is 5"),
    ]:
        before = state.read_bytes()
        ended = dedupe(tmp_path / "a.csv", option, given, "--state", state)
        assert ended.status == 1, (option, given)
        assert f"{option} {given} contradicts the state in {state}, whose {has}" in ended.err
        assert state.read_bytes() == before


def test_bad_states_are_errors(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\n")
    state = tmp_path / "s"
    assert dedupe(tmp_path / "a.txt", "--window", 9, "--state", state).status == 0
    state.write_bytes(state.read_bytes()[:-1])
    ended = dedupe(tmp_path / "a.txt", "--window", 9, "--state", state)
    assert ended.status == 1
    assert f"--state {state}" in ended.err
    ended = dedupe(tmp_path / "a.txt", "--window", 9, "--state", tmp_path / "no" / "s")
    assert ended.status == 1
    assert f"the folder {tmp_path}/no does not exist" in ended.err
    assert ended.out == b""
    for name in ("x", "x.json", "x.lock"):
        options = ("--format", "jsonl", "--window", 9, "--state", tmp_path / "x", "-o", tmp_path / name)
        ended = dedupe(tmp_path / "a.txt", *options)
        assert (ended.status, f"{name} is a file of --state" in ended.err) == (2, True)


def test_a_run_that_the_state_holds_leaves_its_output(tmp_path, dedupe):
    source, target, state = tmp_path / "a.txt", tmp_path / "o", tmp_path / "s"
    source.write_bytes(b"a\nb\na\n")
    options = (source, "--window", 9, "--state", state, "-o", target)
    assert dedupe(*options).status == 0
    before = state.read_bytes()
    ended = dedupe(*options)  # as a scheduler does that lost the first one's exit status
    assert (ended.status, target.read_bytes(), state.read_bytes()) == (0, b"a\nb\n", before)
    assert "contains these inputs already" in ended.err
    target.write_bytes(b"")  # another program has taken what was there
    os.utime(target, ns=(0, 0))
    assert dedupe(*options).status == 0
    assert target.read_bytes() == b""
    source.write_bytes(b"a\nc\n")
    assert dedupe(*options).status == 0
    assert target.read_bytes() == b"c\n"


def test_a_state_holds_what_came_by_a_pipe(tmp_path):
    target, options = tmp_path / "o", ("--window", 9, "--state", tmp_path / "s", "-o", tmp_path / "o")
    for given, new in [(b"a\nb\n", b"a\nb\n"), (b"a\nb\n", b"a\nb\n"), (b"b\nc\n", b"c\n")]:
        assert finish(start(*options), given).status == 0
        assert target.read_bytes() == new


def test_a_state_that_python_saved_goes_on(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"k,v\n1,2\n3,4\n")
    options = (tmp_path / "a.csv", "--state", tmp_path / "s", "-o", tmp_path / "o.csv")
    assert dedupe(*options, "--window", 9, "--key", "k").status == 0
    f = lately.open(tmp_path / "s")
    f.add("5")
    f.save(tmp_path / "s")
    (tmp_path / "a.csv").write_bytes(b"k,v\n5,2\n6,4\n")
    assert dedupe(*options).status == 0
    assert (tmp_path / "o.csv").read_bytes() == b"k,v\n6,4\n"


def test_a_note_of_anything_is_an_error_and_no_traceback(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\n")
    options = (tmp_path / "a.txt", "--window", 9, "--state", tmp_path / "s", "-o", tmp_path / "o")
    assert dedupe(*options).status == 0
    made, runs = json.loads((tmp_path / "s.json").read_text())
    options_of_runs = ([], None, {"colour": "red"}, {"key": 5}, {"key": [5]}, {"format": [1]})
    notes = [{made: wrong, runs: []} for wrong in options_of_runs]
    notes += [{made: {}, runs: wrong} for wrong in (5, [5], [{}])]
    for note in (*notes, {made: {}}, {runs: []}, [], 5):
        (tmp_path / "s.json").write_text(json.dumps(note))
        ended = dedupe(*options)
        assert (ended.status, f"cannot read its note {tmp_path}/s.json" in ended.err) == (1, True), note


def test_two_runs_do_not_share_a_state(tmp_path):
    options = ("--window", 9, "--state", tmp_path / "s")
    first = start(*options)
    first.stdin.write(b"a\n")
    first.stdin.flush()
    assert first.stdout.readline() == b"a\n"
    ended = finish(start(*options), b"b\n")
    assert (ended.status, ended.out) == (1, b"")
    assert f"--state {tmp_path}/s is in use by another run" in ended.err
    assert finish(first, b"c\n").status == 0
    assert finish(start(*options), b"a\nb\nc\n").out == b"b\n"
    assert sorted(tmp_path.iterdir()) == [tmp_path / "s", tmp_path / "s.json"]


def test_a_state_knows_key_and_format(tmp_path, dedupe):
    (tmp_path / "a.csv").write_bytes(b"k,v\n1,2\n3,4\n")
    (tmp_path / "b.jsonl").write_bytes(b'{"k": "1", "v": "5"}\n')
    state = tmp_path / "s"
    assert dedupe(tmp_path / "a.csv", "--window", 9, "--key", "k", "--state", state).status == 0
    (tmp_path / "a.csv").write_bytes(b"k,v\n1,9\n5,4\n")
    assert dedupe(tmp_path / "a.csv", "--state", state).out == b"k,v\n5,4\n"  # the key is that of the state
    before = state.read_bytes()
    for options, message in [
        ((tmp_path / "a.csv", "--key", "v,k"), "--key v,k contradicts the state in {}, whose key is k"),
        ((tmp_path / "a.csv", "--format", "text"), "--format text contradicts the state in {}, whose format is csv"),
        ((tmp_path / "b.jsonl",), "{}/b.jsonl is jsonl by its name, and the state in {}/s is of csv"),
    ]:
        ended = dedupe(*options, "--state", state)
        assert ended.status == 1
        assert message.replace("{}/", f"{tmp_path}/").format(state) in ended.err
        assert state.read_bytes() == before


def test_a_state_needs_a_regular_file_of_its_own(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\n")
    ended = dedupe(tmp_path / "a.txt", "--window", 9, "--state", "/dev/null")
    assert (ended.status, "not a regular file" in ended.err) == (1, True)
    ended = dedupe(tmp_path / "a.txt", "--window", 9, "--state", tmp_path / "s", "-o", tmp_path / "a.txt")
    assert (ended.status, "is an input too" in ended.err) == (2, True)
    assert list(tmp_path.iterdir()) == [tmp_path / "a.txt"]


def test_a_file_that_is_mounted_alone_is_refused_before_any_output(tmp_path):
    """As in a container whose file is mounted without its folder."""
    (tmp_path / "a b.lately").touch()
    command = f"{sys.executable} -m lately dedupe --window 9 --state 'a b.lately' && true || echo status $?"
    script = f"mount --bind 'a b.lately' 'a b.lately' || echo unable; echo a | {command}"
    unshared = ["unshare", "--map-root-user", "--mount", "sh", "-c", script]
    try:
        done = subprocess.run(unshared, cwd=tmp_path, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs unshare")
    if "unable" in done.stdout or not done.stdout:
        pytest.skip("mounts are not allowed")
    assert done.stdout == "status 1\n"
    assert "cannot write --state a b.lately: the file is mounted alone, so it cannot be replaced: mount" in done.stderr


def test_a_new_state_is_a_secret(tmp_path, dedupe):
    (tmp_path / "a.txt").write_bytes(b"a\n")
    state, shared = tmp_path / "s", tmp_path / "shared"
    options = (tmp_path / "a.txt", "--window", 9)
    assert dedupe(*options, "--state", state).status == 0
    assert state.stat().st_mode & 0o777 == 0o600
    secret = state.read_bytes()[16:24]
    assert lately.open(state).seed is None
    assert secret.hex().encode() not in (tmp_path / "s.json").read_bytes()
    (tmp_path / "a.txt").write_bytes(b"b\na\n")
    assert dedupe(*options, "--state", state, "--seed", "random").out == b"b\n"
    assert state.read_bytes()[16:24] == secret
    assert state.stat().st_mode & 0o777 == 0o600
    state.chmod(0o640)  # the user shares it
    (tmp_path / "a.txt").write_bytes(b"c\na\n")
    assert dedupe(*options, "--state", state).out == b"c\n"
    assert state.stat().st_mode & 0o777 == 0o640
    assert dedupe(*options, "--state", shared, "--seed", 7).status == 0
    assert shared.stat().st_mode & 0o777 == 0o666 & ~umask()
    assert lately.open(shared).seed == 7


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
