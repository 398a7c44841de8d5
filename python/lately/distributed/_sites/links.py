"""A producer's connections to listeners, shared by all handles of this process."""

import atexit
import hmac
import os
import secrets
import selectors
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lately.distributed._sites.frames import LENGTHS, Buffer, opened
from lately.distributed._sites.listener import Address
from lately.distributed._sites.wire import GREETING, NONCE, proof

CONNECT = 1.0
"""Seconds that a connection may take; then the port may be closed to this machine."""

_AT_ONCE = 64
"""Most connections that are made side by side."""

Asked = Mapping[int, tuple[Address, bytes, list[Buffer]]]


class LostError(ConnectionError):
    """The connection was lost: what the site did is unknown."""


class UnreachableError(ConnectionError):
    """There is no connection; nothing was sent."""


class _Link:
    """A connection, whose ends have proved to each other that both know the key."""

    def __init__(self, address: Address, key: bytes, end: float) -> None:
        self._socket = socket.create_connection(address, timeout=max(0.001, end - time.monotonic()))
        self._unsent = memoryview(b"")
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._read(len(GREETING), end) != GREETING:
                raise UnreachableError(f"{address} is no listener of this version")
            theirs, ours = bytes(self._read(NONCE, end)), secrets.token_bytes(NONCE)
            self._socket.sendall(ours + proof(key, b"producer", theirs, ours))
            if not hmac.compare_digest(self._read(NONCE, end), proof(key, b"site", ours, theirs)):
                raise UnreachableError(f"{address} is another site's")
        except BaseException:
            self.close()
            raise

    @property
    def lost(self) -> bool:
        """Whether the other end has closed it, or says what nobody has asked."""
        self._socket.settimeout(0)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def fileno(self) -> int:
        return self._socket.fileno()

    def begin(self, frame: list[Buffer]) -> bool:
        """Begin to send; tell whether all is sent."""
        self._unsent = memoryview(b"".join(frame))
        self._socket.settimeout(0)
        return self.go_on()

    def go_on(self) -> bool:
        """Send what can be sent without waiting; tell whether that is all."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            return False
        return True

    def answer(self, end: float) -> Any:
        """Wait for an answer."""
        head, arrays = LENGTHS.unpack(self._read(LENGTHS.size, end))
        return opened(self._read(head, end), self._read(arrays, end))

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int, end: float) -> bytearray:
        data = bytearray(size)
        left = memoryview(data)
        while left:
            # What has come is read, even if it is too late to wait.
            self._socket.settimeout(max(0.0, end - time.monotonic()))
            try:
                got = self._socket.recv_into(left)
            except BlockingIOError:
                raise TimeoutError("no answer in time") from None
            if not got:
                raise EOFError("the connection was closed")
            left = left[got:]
        return data


class Links:
    """Connections, of which a request has one for itself until it is answered."""

    def __init__(self) -> None:
        self._free: dict[tuple[Address, bytes], list[_Link]] = defaultdict(list)
        self._lock = threading.Lock()

    def ask(self, asked: Asked, end: float) -> dict[int, Any]:
        """Send a frame to each site before any answer is waited for.

        Parameters
        ----------
        asked : mapping from int to (address, key, frame)
        end : float
            Moment of `time.monotonic` until which to wait.

        Returns
        -------
        dict
            What each answered, or the error in its place: `UnreachableError`, `LostError`, TimeoutError.
        """
        answers: dict[int, Any] = {}
        links = self._linked(asked, end, answers)
        try:
            self._send(asked, links, end, answers)
            # The answers of the others arrive while one is waited for.
            for site in [site for site in asked if site not in answers]:
                try:
                    answers[site] = links[site].answer(end)
                except (OSError, EOFError, ValueError) as error:
                    late = isinstance(error, TimeoutError)
                    answers[site] = error if late else LostError(str(error) or type(error).__name__)
                else:
                    with self._lock:
                        self._free[asked[site][:2]].append(links.pop(site))
        finally:
            for link in links.values():
                link.close()
        return answers

    def close(self) -> None:
        """Close what is open; for the end of the process."""
        for free in list(self._free.values()):
            for link in free:
                link.close()
        self._free.clear()

    def _send(self, asked: Asked, links: Mapping[int, _Link], end: float, answers: dict[int, Any]) -> None:
        """Send to all; one that does not take what it is sent holds up no other."""
        unsent = []
        for site, link in links.items():
            try:
                if not link.begin(asked[site][2]):
                    unsent.append(site)
            except OSError as error:
                answers[site] = LostError(str(error))
        if not unsent:
            return
        with selectors.DefaultSelector() as selector:
            for site in unsent:
                selector.register(links[site], selectors.EVENT_WRITE, site)
            while selector.get_map() and (left := end - time.monotonic()) > 0:
                for ready, _ in selector.select(left):
                    try:
                        if links[ready.data].go_on():
                            selector.unregister(ready.fileobj)
                    except OSError as error:
                        answers[ready.data] = LostError(str(error))
                        selector.unregister(ready.fileobj)

    def _linked(self, asked: Asked, end: float, answers: dict[int, Any]) -> dict[int, _Link]:
        """Give a connection to each site; where there is none, that is the answer."""
        links = {site: link for site, (address, key, _) in asked.items() if (link := self._kept(address, key))}
        missing = [site for site in asked if site not in links]
        if missing:
            self._clear()
            with ThreadPoolExecutor(min(len(missing), _AT_ONCE)) as pool:
                made = list(pool.map(lambda site: self._made(*asked[site][:2], end), missing))
            links |= {site: link for site, link in zip(missing, made, strict=True) if isinstance(link, _Link)}
            answers |= {site: error for site, error in zip(missing, made, strict=True) if isinstance(error, Exception)}
        return links

    def _clear(self) -> None:
        """Close the connections of sites that are gone."""
        with self._lock:
            for other in [other for other, free in self._free.items() if all(link.lost for link in free)]:
                for link in self._free.pop(other):
                    link.close()

    def _kept(self, address: Address, key: bytes) -> _Link | None:
        with self._lock:
            free = self._free.get((address, key), [])
            while free:
                if not (link := free.pop()).lost:
                    return link
                link.close()
        return None

    def _made(self, address: Address, key: bytes, end: float) -> _Link | UnreachableError:
        try:
            return _Link(address, key, min(time.monotonic() + CONNECT, end))
        except (OSError, EOFError) as error:
            return UnreachableError(str(error) or type(error).__name__)


_lock = threading.Lock()
_links: Links | None = None


def links() -> Links:
    """Give those of this process."""
    global _links
    with _lock:
        _links = _links or Links()
        return _links


@atexit.register
def _end() -> None:
    if _links is not None:
        _links.close()


def _forget() -> None:
    """Leave the connections to the parent: two processes must not speak over one."""
    global _links, _lock
    _end()
    _links, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
