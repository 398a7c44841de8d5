"""Ports, by which batches travel between a producer and an actor. Everything else travels by calls of Ray.

*Handshake.* The listener sends `GREETING` and 32 random bytes. The producer replies with 32 random bytes of its own and
the HMAC-SHA256 of ``b"producer"`` and both, the listener with that of ``b"site"`` and both. The key belongs to one
actor (`key_of`) and is derived from a secret of the filter, which travels with its handles.

*Messages* are frames (`frames.py`). A request is a list, ``[method, argument, ...]``; the answer is what the method
returns, or ``{"error": [type, message]}``. Requests of one connection are answered in order.

*Limits.* Before the handshake a listener reads 64 bytes and no more, within `PATIENCE` seconds, from at most
`STRANGERS` connections at a time; the oldest is closed for a new one. After the handshake, no frame is larger than
`LARGEST`, and a peer that sends or reads a frame more slowly than `SLOWEST` is dropped. Nothing that is read is
unpickled or executed.
"""

import atexit
import hmac
import os
import secrets
import socket
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from lately.distributed._sites.errors import encode_error
from lately.distributed._sites.frames import LENGTHS, Buffer, decode_frame, encode_frame
from lately.distributed._sites.interface import PROTOCOL

# Host and port.
Address = tuple[str, int]
# First bytes that a listener sends: what it is, and its version.
GREETING = b"lately %02d" % PROTOCOL
# Random bytes of each side; a proof is as long.
NONCE = 32
# Seconds within which a connection must prove that it has the key.
PATIENCE = 5.0
# Greatest number of connections that have not proved it yet.
STRANGERS = 64
# Greatest number of bytes of a frame's JSON, and of its arrays.
LARGEST = (2**26, 2**32)
# Least number of bytes per second of a frame, after the first `PATIENCE` seconds.
SLOWEST = 2**20
# Seconds that connecting may take. If it takes longer, this machine may be unable to reach the port.
CONNECT = 1.0
# For each actor: its address, the key of its port, and a frame.
Requests = Mapping[int, tuple[Address, bytes, list[Buffer]]]


class LostError(ConnectionError):
    """The connection was lost: what the actor did is unknown."""


class UnreachableError(ConnectionError):
    """There is no connection; nothing was sent."""


def key_of(secret: bytes, actor: int) -> bytes:
    """Derive the key of one actor. Each has its own, because another actor of the filter may get its port later."""
    return hmac.digest(secret, b"actor %d" % actor, "sha256")


def proof(key: bytes, role: bytes, theirs: bytes, ours: bytes) -> bytes:
    """Prove knowledge of the key, by the random bytes of both sides."""
    return hmac.digest(key, role + theirs + ours, "sha256")


def _receive(peer: socket.socket, size: int, end: float) -> bytearray:
    """Read exactly `size` bytes until the moment `end`. Bytes that have arrived are read even after it."""
    data = bytearray(size)
    left = memoryview(data)
    while left:
        peer.settimeout(max(0.0, end - time.monotonic()))
        try:
            got = peer.recv_into(left)
        except BlockingIOError:
            raise TimeoutError("no answer in time") from None
        if not got:
            raise EOFError("the connection was closed")
        left = left[got:]
    return data


def _receive_frame(peer: socket.socket, lengths: bytes | bytearray, end: float) -> Any:
    """Read the rest of a frame. Its lengths are checked before memory is allocated."""
    head, arrays = LENGTHS.unpack(lengths)
    if head > LARGEST[0] or arrays > LARGEST[1]:
        raise ConnectionError(f"a frame of {head} and {arrays} bytes is larger than {LARGEST[0]} and {LARGEST[1]}")
    return _receive(peer, head, end), _receive(peer, arrays, end)


class Listener:
    """A port that answers requests, with a thread for each connection; raises `OSError` if none can be opened.

    It binds only `host`, the address by which other nodes reach this node. Producers must have the key (`key_of`).
    `answer` is called with a request; the answer is what it returns, or the error that it raises.
    """

    def __init__(self, host: str, key: bytes, answer: Callable[[Any], Any]) -> None:
        self._key, self._answer = key, answer
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Producers may all come at once, after a restart.
        self._socket = socket.create_server((host, 0), family=family, backlog=512)
        self.address: Address = (host, self._socket.getsockname()[1])
        # The connections that have proved nothing yet, the oldest first.
        self._strangers: OrderedDict[socket.socket, None] = OrderedDict()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, name=f"port {self.address[1]}", daemon=True).start()

    def _accept(self) -> None:
        while self._socket.fileno() >= 0:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                # The process may open no more files for a while.
                time.sleep(0.05)
                continue
            with self._lock:
                if len(self._strangers) >= STRANGERS:
                    oldest, _ = self._strangers.popitem(last=False)
                    with suppress(OSError):
                        oldest.shutdown(socket.SHUT_RDWR)
                self._strangers[peer] = None
            threading.Thread(target=self._serve, args=(peer,), name="connection", daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, suppress(OSError, EOFError):
            try:
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                proved = self._greet(peer, time.monotonic() + PATIENCE)
            finally:
                with self._lock:
                    self._strangers.pop(peer, None)
            if not proved:
                return
            # A producer may be silent for days; TCP notices if its machine is gone.
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            while True:
                peer.settimeout(None)
                first = peer.recv(LENGTHS.size)
                if not first:
                    return
                self._exchange(peer, first)

    def _greet(self, peer: socket.socket, end: float) -> bool:
        ours = secrets.token_bytes(NONCE)
        peer.sendall(GREETING + ours)
        theirs, shown = (bytes(_receive(peer, NONCE, end)) for _ in range(2))
        if not hmac.compare_digest(shown, proof(self._key, b"producer", ours, theirs)):
            return False
        peer.sendall(proof(self._key, b"site", theirs, ours))
        return True

    def _exchange(self, peer: socket.socket, first: bytes) -> None:
        """Read a request and answer it."""
        end = time.monotonic() + PATIENCE
        lengths = first + _receive(peer, LENGTHS.size - len(first), end)
        request = _receive_frame(peer, lengths, end + sum(LENGTHS.unpack(lengths)) / SLOWEST)
        try:
            frame = encode_frame(self._answer(decode_frame(*request)))
        except Exception as error:
            frame = encode_frame(encode_error(error))
        data = b"".join(frame)
        peer.settimeout(PATIENCE + len(data) / SLOWEST)
        peer.sendall(data)


class _Link:
    """A connection whose ends have proved to each other that both have the key."""

    def __init__(self, address: Address, key: bytes, end: float) -> None:
        self._socket = socket.create_connection(address, timeout=max(0.001, end - time.monotonic()))
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if _receive(self._socket, len(GREETING), end) != GREETING:
                raise UnreachableError(f"{address} is no listener of this version")
            theirs, ours = bytes(_receive(self._socket, NONCE, end)), secrets.token_bytes(NONCE)
            self._socket.sendall(ours + proof(key, b"producer", theirs, ours))
            if not hmac.compare_digest(_receive(self._socket, NONCE, end), proof(key, b"site", ours, theirs)):
                raise UnreachableError(f"{address} belongs to another actor")
        except BaseException:
            self.close()
            raise

    @property
    def lost(self) -> bool:
        """Whether the other end has closed the connection, or sent bytes that belong to no request."""
        self._socket.settimeout(0)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def begin(self, data: memoryview) -> memoryview:
        """Send what can be sent without waiting; return the rest."""
        self._socket.settimeout(0)
        with suppress(BlockingIOError):
            while data:
                data = data[self._socket.send(data) :]
        return data

    def finish(self, data: memoryview, end: float) -> None:
        """Send the rest."""
        self._socket.settimeout(max(0.001, end - time.monotonic()))
        self._socket.sendall(data)

    def answer(self, end: float) -> Any:
        """Wait for an answer."""
        return decode_frame(*_receive_frame(self._socket, _receive(self._socket, LENGTHS.size, end), end))

    def close(self) -> None:
        self._socket.close()


class Links:
    """The connections of a producer. Each carries one request at a time."""

    def __init__(self) -> None:
        self._free: dict[tuple[Address, bytes], list[_Link]] = defaultdict(list)
        self._lock = threading.Lock()

    def exchange(self, requests: Requests, end: float) -> dict[int, Any]:
        """Send a frame to each actor before waiting for any answer, until the moment `end` of `time.monotonic`.

        Returns the answer of each, or the error in its place: `UnreachableError`, `LostError`, TimeoutError.
        """
        answers: dict[int, Any] = {}
        links: dict[int, _Link] = {}
        unsent: dict[int, memoryview] = {}

        def begin(actor: int) -> None:
            address, key, frame = requests[actor]
            unsent[actor] = memoryview(b"".join(frame))
            if link := self._idle(address, key):
                links[actor] = link
                unsent[actor] = link.begin(unsent[actor])

        def finish(actor: int) -> None:
            if actor not in links:
                address, key, _ = requests[actor]
                try:
                    links[actor] = _Link(address, key, min(time.monotonic() + CONNECT, end))
                except (OSError, EOFError) as error:
                    raise UnreachableError(str(error) or type(error).__name__) from error
            links[actor].finish(unsent[actor], end)

        def receive(actor: int) -> None:
            answers[actor] = links[actor].answer(end)
            with self._lock:
                self._free[requests[actor][:2]].append(links.pop(actor))

        def attempt(step: Callable[[int], None], actor: int) -> None:
            try:
                step(actor)
            except (UnreachableError, TimeoutError) as error:
                answers[actor] = error
            except (OSError, EOFError, ValueError) as error:
                answers[actor] = LostError(str(error) or type(error).__name__)

        try:
            for actor in requests:
                attempt(begin, actor)
            if slow := [actor for actor, data in unsent.items() if data and actor not in answers]:
                if not links.keys() >= set(slow):
                    self._discard_lost()
                # An actor that cannot be reached, or does not read, delays no other.
                with ThreadPoolExecutor(len(slow)) as pool:
                    list(pool.map(partial(attempt, finish), slow))
            # The answers of the others arrive meanwhile.
            for actor in [actor for actor in requests if actor not in answers]:
                attempt(receive, actor)
        finally:
            for link in links.values():
                link.close()
        return answers

    def close(self) -> None:
        """Close all idle connections. A forked process does so too: two processes must not use one connection."""
        for free in list(self._free.values()):
            for link in free:
                link.close()
        self._free.clear()
        # Another thread may have had the lock at the fork.
        self._lock = threading.Lock()

    def _discard_lost(self) -> None:
        """Close the connections to actors that are gone."""
        with self._lock:
            for other in [other for other, free in self._free.items() if all(link.lost for link in free)]:
                for link in self._free.pop(other):
                    link.close()

    def _idle(self, address: Address, key: bytes) -> _Link | None:
        with self._lock:
            free = self._free.get((address, key), [])
            while free:
                if not (link := free.pop()).lost:
                    return link
                link.close()
        return None


# The connections of this process, which all handles share.
LINKS = Links()
atexit.register(LINKS.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LINKS.close)
