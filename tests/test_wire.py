"""What crosses the wire: frames, proofs of who one is, lost connections and deadlines."""

import gc
import os
import pickle
import socket
import threading
import time
import warnings
from contextlib import suppress

import numpy as np
import pytest

import lately
from lately.distributed._sites.frames import LENGTHS, framed, opened
from lately.distributed._sites.interface import Message
from lately.distributed._sites.links import LostError, UnreachableError, links
from lately.distributed._sites.listener import Listener
from lately.distributed._sites.memo import Ticket
from lately.distributed._sites.site import SupersededError
from lately.distributed._sites.wire import GREETING, NONCE, key_of, proof, raised, refusal

KEY = key_of(b"secret", 0)


@pytest.fixture
def listen(monkeypatch):
    """Make listeners, which end with the test. A busy machine may take longer than a second to connect."""
    monkeypatch.setattr("lately.distributed._sites.links.CONNECT", 30.0)
    made = []

    def make(answer, key=KEY):
        made.append(Listener("127.0.0.1", key, answer))
        return made[-1].address

    yield make
    for listener in made:
        listener.close()


def ask(address, value, *, key=KEY, seconds=30.0):
    return links().ask({0: (address, key, framed(value))}, time.monotonic() + seconds)[0]


def unframed(frame):
    whole = b"".join(frame)
    head, arrays = LENGTHS.unpack(whole[: LENGTHS.size])
    assert len(whole) == LENGTHS.size + head + arrays
    return opened(whole[LENGTHS.size : LENGTHS.size + head], whole[LENGTHS.size + head :])


def test_a_message_arrives_as_it_was():
    hashes = lately.hash_keys(np.arange(1001))
    ticket = Ticket("producer é", 2**62, np.arange(1001), lasting=True)
    columns = (hashes, np.arange(1001) % 2 == 0, np.zeros((3, 0), np.int64), hashes[::2].reshape(-1, 3))
    sent = Message(3, "set", columns, {"refresh": True, "newest": -(2**63)}, ticket, 7).plain()
    method, there, options, (producer, number, index, lasting), fence = unframed(framed(sent))
    assert (method, options, producer, number, lasting, fence) == ("set", sent[2], "producer é", 2**62, True, 7)
    for before, after in zip((*columns, ticket.index), (*there, index), strict=True):
        assert (before.dtype, before.shape) == (after.dtype, after.shape)
        assert (before == after).all()
        assert after.flags.aligned


def test_the_form_is_the_documented_one():
    """Byte by byte: who changes it changes `PROTOCOL`."""
    head = b'["a", {"dtype": "<i4", "shape": [3]}, null]'
    head += b" " * (-len(head) % 8)
    arrays = np.array([1, 2, 3], "<i4").tobytes() + bytes(4)
    assert b"".join(framed(["a", np.array([1, 2, 3], np.int32), None])) == LENGTHS.pack(len(head), 16) + head + arrays
    assert GREETING == b"lately 05"


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
def test_what_is_no_frame_is_refused(head):
    with pytest.raises(ValueError, match=r"."):
        opened(head, bytes(8))


def test_objects_do_not_cross():
    for value in (object(), np.array([object()]), np.array(["text"]), b"bytes"):
        with pytest.raises(TypeError, match="does not cross the wire"):
            framed([value])


@pytest.mark.parametrize("error", [ValueError("at[3] is late"), SupersededError("turn 1 is over"), MemoryError("no")])
def test_an_error_stays_what_it_is(error):
    again = raised(unframed(framed(refusal(error)))["error"])
    assert (type(again), str(again)) == (type(error), str(error))


def test_an_error_of_an_unknown_type_says_its_name():
    assert str(raised(refusal(FileNotFoundError("gone"))["error"])) == "FileNotFoundError: gone"


# --- over a port


def test_answers_come_by_a_port_and_connections_are_kept(listen):
    there = []
    address = listen(lambda request: there.append(threading.current_thread()) or request)
    for i in range(20):
        assert ask(address, [i, np.arange(i)])[0] == i
    assert len(set(there)) == 1
    big = np.arange(10**6)
    assert (ask(address, [big])[0] == big).all()
    assert ask(address, "at the end") == "at the end"


def answer_once(server):
    """Be a site that is gone after its first answer."""
    there, _ = server.accept()
    with there, there.makefile("rb") as file:
        there.sendall(GREETING + bytes(NONCE))
        theirs, _ = file.read(NONCE), file.read(NONCE)
        there.sendall(proof(KEY, b"site", theirs, bytes(NONCE)))
        head, arrays = LENGTHS.unpack(file.read(LENGTHS.size))
        there.sendall(b"".join(framed(opened(file.read(head), file.read(arrays)))))


def test_connections_to_sites_that_are_gone_are_closed(listen):
    """Else Python warns of each, whenever it collects them."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            with socket.create_server(("127.0.0.1", 0)) as server:
                gone = threading.Thread(target=answer_once, args=(server,))
                gone.start()
                assert ask(server.getsockname(), "once") == "once"
                gone.join()
            assert ask(listen(lambda request: request), "another") == "another"
            gc.collect()
    assert not [warning for warning in seen if warning.category is ResourceWarning]


def test_all_sites_have_the_batch_before_any_is_waited_for(listen):
    met = threading.Barrier(4)
    addresses = [listen(lambda request: met.wait(30) >= 0) for _ in range(4)]
    asked = {i: (address, KEY, framed([np.arange(10**5)])) for i, address in enumerate(addresses)}
    answers = links().ask(asked, time.monotonic() + 60)
    assert answers == dict.fromkeys(range(4), True)


@pytest.mark.parametrize("wrong", [b"x" * 32, key_of(b"secret", 1)])
def test_who_does_not_know_the_key_learns_and_changes_nothing(listen, wrong):
    heard = []
    address = listen(heard.append)
    assert isinstance(ask(address, "stranger", key=wrong), UnreachableError)
    assert not heard
    assert ask(address, "friend") is None
    assert heard == ["friend"]


def test_who_listens_elsewhere_does_not_get_the_keys(listen):
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
        assert isinstance(ask(other.getsockname(), "secret keys"), UnreachableError)
        thread.join()
    assert (len(got[0]), got[1]) == (2 * NONCE, b"")


def test_strangers_are_not_heard_and_hold_up_nobody(listen):
    heard = []
    address = listen(heard.append)
    with socket.create_connection(address) as silent, socket.create_connection(address) as loud:
        loud.sendall(pickle.dumps(print) * 1000)
        assert ask(address, "friend") is None
        # Whoever proves nothing is sent away.
        for stranger in (loud, silent):
            stranger.settimeout(60)
            stranger.recv(len(GREETING) + NONCE)
            with suppress(ConnectionError):
                assert stranger.recv(1) == b""
    assert heard == ["friend"]


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


def test_what_is_sent_by_a_friend_but_no_frame_is_an_error(listen):
    address = listen(lambda request: request)
    frame = framed([np.arange(3)])
    frame[1] = frame[1].replace(b"<i8", b"|O8")
    answer = links().ask({0: (address, KEY, frame)}, time.monotonic() + 30)[0]
    assert isinstance(raised(answer["error"]), ValueError)
    assert ask(address, "goes on") == "goes on"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_connection_that_is_lost_is_told_at_once(listen):
    def dies(request):
        raise SystemExit

    address = listen(dies)
    began = time.monotonic()
    assert isinstance(ask(address, "lost", seconds=300), LostError)
    assert time.monotonic() - began < 100
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = closed.getsockname()
    assert isinstance(ask(nobody, "nobody", seconds=300), UnreachableError)


def test_one_that_is_late_does_not_make_the_others_so(listen):
    go_on = threading.Event()
    late, early = listen(lambda request: go_on.wait() and None), listen(lambda request: request)
    asked = {i: (address, KEY, framed([i])) for i, address in enumerate([late, early])}
    for _ in range(2):
        answers = links().ask(asked, time.monotonic() + 0.5)
        assert isinstance(answers[0], TimeoutError)
        assert answers[1] == [1]
    # What comes too late is nobody's answer.
    go_on.set()
    assert ask(late, [2]) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_connections_of_its_own(listen):
    address = listen(lambda request: [request, threading.get_ident()])
    ours = ask(address, "parent")[1]
    read, write = os.pipe()
    if not (child := os.fork()):
        gc.collect()
        os.write(write, str(ask(address, "child")[1]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(read, 100)) != ours
    assert ask(address, "parent") == ["parent", ours]
    os.close(read)
    os.close(write)
