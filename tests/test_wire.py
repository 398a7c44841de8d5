"""The protocol of the ports: frames, proofs of identity, lost connections and deadlines."""

import gc
import os
import pickle
import socket
import threading
import time
import warnings
from contextlib import ExitStack, suppress

import numpy as np
import pytest

import lately
from lately.distributed._sites import port as _port
from lately.distributed._sites.errors import SupersededError, decode_error, encode_error
from lately.distributed._sites.frames import LENGTHS, decode_frame, encode_frame
from lately.distributed._sites.interface import Message
from lately.distributed._sites.port import (
    GREETING,
    LARGEST,
    LINKS,
    NONCE,
    STRANGERS,
    Listener,
    LostError,
    UnreachableError,
    key_of,
    proof,
)
from lately.distributed._sites.results import RequestId
from support.site import close

KEY = key_of(b"secret", 0)


@pytest.fixture
def listen(monkeypatch):
    """Make listeners, which end with the test. A busy machine may take longer than a second to connect."""
    monkeypatch.setattr(_port, "CONNECT", 30.0)
    made = []

    def make(answer, key=KEY):
        made.append(Listener("127.0.0.1", key, answer))
        return made[-1].address

    yield make
    for listener in made:
        close(listener)


def exchanged(address, value, *, key=KEY, seconds=30.0):
    return LINKS.exchange({0: (address, key, encode_frame(value))}, time.monotonic() + seconds)[0]


def decode(frame):
    whole = b"".join(frame)
    head, arrays = LENGTHS.unpack(whole[: LENGTHS.size])
    assert len(whole) == LENGTHS.size + head + arrays
    return decode_frame(whole[LENGTHS.size : LENGTHS.size + head], whole[LENGTHS.size + head :])


def test_a_message_arrives_as_it_was():
    hashes = lately.hash_keys(np.arange(1001))
    request = RequestId("producer é", 2**62, np.arange(1001), lasting=True)
    columns = (hashes, np.arange(1001) % 2 == 0, np.zeros((3, 0), np.int64), hashes[::2].reshape(-1, 3))
    sent = Message(3, "set", columns, {"refresh": True, "newest": -(2**63)}, request, 7).plain()
    method, there, options, (producer, number, index, lasting), fence = decode(encode_frame(sent))
    assert (method, options, producer, number, lasting, fence) == ("set", sent[2], "producer é", 2**62, True, 7)
    for before, after in zip((*columns, request.index), (*there, index), strict=True):
        assert (before.dtype, before.shape) == (after.dtype, after.shape)
        assert (before == after).all()
        assert after.flags.aligned


def test_the_form_is_the_documented_one():
    """Byte by byte: a change of the form needs a new `PROTOCOL`."""
    head = b'["a", {"dtype": "<i4", "shape": [3]}, null]'
    head += b" " * (-len(head) % 8)
    arrays = np.array([1, 2, 3], "<i4").tobytes() + bytes(4)
    frame = b"".join(encode_frame(["a", np.array([1, 2, 3], np.int32), None]))
    assert frame == LENGTHS.pack(len(head), 16) + head + arrays
    assert GREETING == b"lately 06"


@pytest.mark.parametrize(
    "head",
    [
        b'{"dtype": "|O", "shape": [1]}',
        b'{"dtype": "<i8", "shape": [9]}',
        b'{"dtype": "<i8", "shape": [-1, -1]}',
        b'{"dtype": "<i8", "shape": "x"}',
        b'{"dtype": "V8", "shape": [1]}',
        b'{"dtype": [["a", "<i8"]], "shape": [1]}',
        b"not JSON",
        b"[" * 100_000,
        pickle.dumps(print),
    ],
)
def test_bytes_of_no_frame_are_rejected(head):
    with pytest.raises(ValueError, match=r"."):
        decode_frame(head, bytes(8))


def test_objects_do_not_cross():
    for value in (object(), np.array([object()]), np.array(["text"]), b"bytes"):
        with pytest.raises(TypeError, match="does not cross the wire"):
            encode_frame([value])


@pytest.mark.parametrize("error", [ValueError("at[3] is late"), SupersededError("lease 1 is over"), MemoryError("no")])
def test_an_error_stays_what_it_is(error):
    again = decode_error(decode(encode_frame(encode_error(error)))["error"])
    assert (type(again), str(again)) == (type(error), str(error))


def test_an_error_of_an_unknown_type_has_the_name_of_its_type():
    assert str(decode_error(encode_error(FileNotFoundError("gone"))["error"])) == "FileNotFoundError: gone"


# --- over a port


def test_answers_come_by_a_port_and_connections_are_kept(listen):
    there = []
    address = listen(lambda request: there.append(threading.current_thread()) or request)
    for i in range(20):
        assert exchanged(address, [i, np.arange(i)])[0] == i
    assert len(set(there)) == 1
    big = np.arange(10**6)
    assert (exchanged(address, [big])[0] == big).all()
    assert exchanged(address, "at the end") == "at the end"


def answer_once(server):
    """Act as a site that is gone after its first answer."""
    there, _ = server.accept()
    with there, there.makefile("rb") as file:
        there.sendall(GREETING + bytes(NONCE))
        theirs, _ = file.read(NONCE), file.read(NONCE)
        there.sendall(proof(KEY, b"site", theirs, bytes(NONCE)))
        head, arrays = LENGTHS.unpack(file.read(LENGTHS.size))
        there.sendall(b"".join(encode_frame(decode_frame(file.read(head), file.read(arrays)))))


def test_connections_to_sites_that_are_gone_are_closed(listen):
    """Otherwise Python warns of each when it collects them."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            with socket.create_server(("127.0.0.1", 0)) as server:
                gone = threading.Thread(target=answer_once, args=(server,))
                gone.start()
                assert exchanged(server.getsockname(), "once") == "once"
                gone.join()
            assert exchanged(listen(lambda request: request), "another") == "another"
            gc.collect()
    assert not [warning for warning in seen if warning.category is ResourceWarning]


def test_all_sites_have_the_batch_before_any_is_waited_for(listen):
    met = threading.Barrier(4)
    addresses = [listen(lambda request: met.wait(30) >= 0) for _ in range(4)]
    requests = {i: (address, KEY, encode_frame([np.arange(10**5)])) for i, address in enumerate(addresses)}
    answers = LINKS.exchange(requests, time.monotonic() + 60)
    assert answers == dict.fromkeys(range(4), True)


@pytest.mark.parametrize("wrong", [b"x" * 32, key_of(b"secret", 1)])
def test_a_peer_without_the_key_learns_and_changes_nothing(listen, wrong):
    heard = []
    address = listen(heard.append)
    assert isinstance(exchanged(address, "stranger", key=wrong), UnreachableError)
    assert not heard
    assert exchanged(address, "friend") is None
    assert heard == ["friend"]


def test_a_listener_at_another_address_does_not_get_the_keys(listen):
    """A port is taken over by another process when a site is gone."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        got = []

        def serve():
            there, _ = other.accept()
            with there:
                there.sendall(GREETING + bytes(NONCE))
                # It can only send back what it was sent.
                got.append(there.recv(1000))
                there.sendall(got[0][NONCE:])
                got.append(there.recv(1000))

        thread = threading.Thread(target=serve)
        thread.start()
        assert isinstance(exchanged(other.getsockname(), "secret keys"), UnreachableError)
        thread.join()
    assert (len(got[0]), got[1]) == (2 * NONCE, b"")


def test_strangers_are_not_answered_and_delay_no_peer(listen, monkeypatch):
    monkeypatch.setattr(_port, "PATIENCE", 1.0)
    heard = []
    address = listen(heard.append)
    with socket.create_connection(address) as silent, socket.create_connection(address) as loud:
        loud.sendall(pickle.dumps(print) * 1000)
        assert exchanged(address, "friend") is None
        # A peer that proves nothing is dropped.
        for stranger in (loud, silent):
            stranger.settimeout(60)
            stranger.recv(len(GREETING) + NONCE)
            with suppress(ConnectionError):
                assert stranger.recv(1) == b""
    assert heard == ["friend"]


def known(address, key=KEY):
    """Connect by a raw socket that has proved that it knows the key."""
    there = socket.create_connection(address)
    there.settimeout(60)
    nonce = receive(there, len(GREETING) + NONCE)[len(GREETING) :]
    there.sendall(bytes(NONCE) + proof(key, b"producer", nonce, bytes(NONCE)))
    receive(there, NONCE)
    return there


def receive(there, size):
    data = b""
    while len(data) < size and (more := there.recv(size - len(data))):
        data += more
    return data


def dropped(there):
    """Wait until the other end has closed the connection; return whether it did."""
    there.settimeout(60)
    try:
        while there.recv(1000):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def test_a_listener_is_bound_to_its_own_address_only(listen):
    _, port = listen(lambda request: request)
    # All of 127 is this machine; only one address of it is bound.
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port))


GARBAGE = [b"", b"\0" * 2 * NONCE, pickle.dumps(print) * 1000, LENGTHS.pack(2**63, 2**63) * 4]


def test_garbage_is_not_heard(listen, monkeypatch):
    monkeypatch.setattr(_port, "PATIENCE", 0.5)
    heard = []
    address = listen(heard.append)
    with ExitStack() as stack:
        strangers = [stack.enter_context(socket.create_connection(address)) for _ in GARBAGE]
        for stranger, sent in zip(strangers, GARBAGE, strict=True):
            with suppress(ConnectionError):
                stranger.sendall(sent)
        assert all(map(dropped, strangers))
    assert not heard
    assert exchanged(address, "friend") is None


def test_a_peer_that_proves_its_knowledge_byte_by_byte_is_dropped_in_time(listen, monkeypatch):
    monkeypatch.setattr(_port, "PATIENCE", 1.0)
    with socket.create_connection(listen(lambda request: request)) as slow, pytest.raises(ConnectionError):
        trickle(slow)


def trickle(there):
    for _ in range(600):
        there.send(b"x")
        time.sleep(0.1)


@pytest.mark.parametrize("lengths", [(LARGEST[0] + 1, 0), (0, LARGEST[1] + 1), (2**64 - 1, 2**64 - 1)])
def test_a_length_beyond_all_bounds_ends_the_connection_before_memory_is_allocated(listen, lengths):
    address = listen(lambda request: request)
    with known(address) as there:
        there.sendall(LENGTHS.pack(*lengths))
        assert dropped(there)
    assert exchanged(address, "goes on") == "goes on"


def test_half_a_message_ends_the_connection(listen, monkeypatch):
    monkeypatch.setattr(_port, "PATIENCE", 0.5)
    heard = []
    address = listen(heard.append)
    halves = [LENGTHS.pack(8, 8)[:5], LENGTHS.pack(8, 8), LENGTHS.pack(8, 8) + b"[1, "]
    with ExitStack() as stack:
        friends = [stack.enter_context(known(address)) for _ in halves]
        for friend, sent in zip(friends, halves, strict=True):
            friend.sendall(sent)
        assert all(map(dropped, friends))
    assert not heard


def test_a_producer_may_be_silent_between_messages(listen, monkeypatch):
    monkeypatch.setattr(_port, "PATIENCE", 0.2)
    with known(listen(lambda request: request)) as there:
        for _ in range(2):
            time.sleep(0.6)
            frame = b"".join(encode_frame("still there"))
            there.sendall(frame)
            assert receive(there, len(frame)) == frame


def test_a_peer_that_does_not_read_its_answer_is_dropped(listen, monkeypatch):
    monkeypatch.setattr(_port, "PATIENCE", 0.5)
    monkeypatch.setattr(_port, "SLOWEST", 2**40)
    before = set(threading.enumerate())
    with known(listen(lambda request: np.zeros(2**24))) as there:
        there.sendall(b"".join(encode_frame("everything")))
        (serving,) = (thread for thread in set(threading.enumerate()) - before if thread.name == "connection")
        serving.join(60)
        assert dropped(there)


def test_a_thousand_idle_connections_delay_no_peer(listen):
    address = listen(lambda request: request)
    before = threading.active_count()
    idle = []
    try:
        for i in range(1000):
            idle.append(socket.create_connection(address))
            if i % 100 == 99:
                assert exchanged(address, i) == i
        # The oldest have given way.
        until = time.monotonic() + 60
        while threading.active_count() > before + STRANGERS + 2:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert exchanged(address, "after them") == "after them"
    finally:
        for there in idle:
            there.close()


def test_a_frame_too_large_for_a_port_is_left_to_ray(listen, monkeypatch):
    """Messages whose connection was lost are left to Ray too."""
    address = listen(lambda request: request)
    monkeypatch.setattr(_port, "LARGEST", (2**26, 799))
    assert isinstance(exchanged(address, [np.zeros(100)]), LostError)
    assert exchanged(address, "goes on") == "goes on"


def test_a_proof_cannot_be_used_twice(listen):
    heard = []
    address = listen(heard.append)
    sent = []
    for _ in range(2):
        with socket.create_connection(address) as there, there.makefile("rb") as file:
            nonce = file.read(len(GREETING) + NONCE)[len(GREETING) :]
            sent = sent or [bytes(NONCE) + proof(KEY, b"producer", nonce, bytes(NONCE))]
            there.sendall(sent[0])
            answer = file.read(NONCE)
    assert answer == b""


def test_bytes_of_a_trusted_peer_that_are_no_frame_are_an_error(listen):
    address = listen(lambda request: request)
    frame = encode_frame([np.arange(3)])
    frame[1] = frame[1].replace(b"<i8", b"|O8")
    answer = LINKS.exchange({0: (address, KEY, frame)}, time.monotonic() + 30)[0]
    assert isinstance(decode_error(answer["error"]), ValueError)
    assert exchanged(address, "goes on") == "goes on"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_lost_connection_is_reported_at_once(listen):
    dying = []

    def dies(request):
        dying.append(threading.current_thread())
        raise SystemExit

    address = listen(dies)
    began = time.monotonic()
    assert isinstance(exchanged(address, "lost", seconds=300), LostError)
    assert time.monotonic() - began < 100
    # Its end is reported to this test.
    dying[0].join(60)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        unused = closed.getsockname()
    assert isinstance(exchanged(unused, "unused", seconds=300), UnreachableError)


def test_one_that_is_late_does_not_make_the_others_so(listen):
    go_on = threading.Event()
    late, early = listen(lambda request: go_on.wait() and None), listen(lambda request: request)
    requests = {i: (address, KEY, encode_frame([i])) for i, address in enumerate([late, early])}
    for _ in range(2):
        answers = LINKS.exchange(requests, time.monotonic() + 0.5)
        assert isinstance(answers[0], TimeoutError)
        assert answers[1] == [1]
    # What comes too late answers no request.
    go_on.set()
    assert exchanged(late, [2]) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_connections_of_its_own(listen):
    address = listen(lambda request: [request, threading.get_ident()])
    ours = exchanged(address, "parent")[1]
    read, write = os.pipe()
    if not (child := os.fork()):
        gc.collect()
        os.write(write, str(exchanged(address, "child")[1]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(read, 100)) != ours
    assert exchanged(address, "parent") == ["parent", ours]
    os.close(read)
    os.close(write)
