"""A producer's connections to listeners, shared by all handles of this process."""

import asyncio
import atexit
import hmac
import os
import secrets
import selectors
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lately.distributed._sites.frames import LENGTHS, Buffer, opened
from lately.distributed._sites.listener import Address
from lately.distributed._sites.wire import GREETING, NONCE, proof

CONNECT = 1.0
"""Seconds that a connection may take; then the port may be closed to this machine."""

_LIMIT = 2**22
"""Bytes of an answer that may wait to be read, before its sender waits."""


class LostError(ConnectionError):
    """The connection was lost: what the site did is unknown."""


class UnreachableError(ConnectionError):
    """There is no connection; nothing was sent."""


@dataclass
class _Link:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def made(cls, address: Address, key: bytes) -> "_Link":
        """Connect, and prove to each other that both know the key."""
        reader, writer = await asyncio.open_connection(*address, limit=_LIMIT)
        link = cls(reader, writer)
        try:
            if await reader.readexactly(len(GREETING)) != GREETING:
                raise UnreachableError(f"{address} is no listener of this version")
            theirs, ours = await reader.readexactly(NONCE), secrets.token_bytes(NONCE)
            writer.write(ours + proof(key, b"producer", theirs, ours))
            if not hmac.compare_digest(await reader.readexactly(NONCE), proof(key, b"site", ours, theirs)):
                raise UnreachableError(f"{address} is another site's")
        except BaseException:
            link.close()
            raise
        return link

    @property
    def lost(self) -> bool:
        return self.reader.at_eof() or self.writer.is_closing()

    def close(self) -> None:
        with suppress(RuntimeError):
            self.writer.transport.abort()

    async def answer(self) -> Any:
        head, arrays = LENGTHS.unpack(await self.reader.readexactly(LENGTHS.size))
        return opened(await self.reader.readexactly(head), await self.reader.readexactly(arrays))


class Links:
    """Connections, of which a request has one for itself until it is answered."""

    def __init__(self) -> None:
        self._free: dict[tuple[Address, bytes], list[_Link]] = defaultdict(list)
        self._selector = selectors.DefaultSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        threading.Thread(target=self._loop.run_forever, name="connections to sites", daemon=True).start()

    def ask(self, asked: Mapping[int, tuple[Address, bytes, list[Buffer]]], end: float) -> dict[int, Any]:
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
        coming = asyncio.run_coroutine_threadsafe(self._ask(asked, end - time.monotonic()), self._loop)
        try:
            return coming.result()
        except BaseException:
            coming.cancel()
            raise

    def close(self) -> None:
        """Close what is open; for the end of the process."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(CONNECT)

    async def _ask(self, asked: Mapping[int, tuple[Address, bytes, list[Buffer]]], patience: float) -> dict[int, Any]:
        end = asyncio.get_running_loop().time() + patience
        answers: dict[int, Any] = {}
        links: dict[int, _Link] = {}
        try:
            for site, link in zip(asked, await self._linked(asked, patience), strict=True):
                if isinstance(link, _Link):
                    links[site] = link
                    link.writer.writelines(asked[site][2])
                else:
                    answers[site] = link
            # The answers of the others arrive while one is waited for.
            for site, link in list(links.items()):
                try:
                    async with asyncio.timeout_at(end):
                        answers[site] = await link.answer()
                except (OSError, EOFError, ValueError) as error:
                    late = isinstance(error, TimeoutError)
                    answers[site] = error if late else LostError(str(error) or type(error).__name__)
                else:
                    self._free[asked[site][:2]].append(links.pop(site))
        finally:
            for link in links.values():
                link.close()
        return answers

    def leave(self) -> None:
        """Leave all to the parent of this process: what the loop waits for is shared until this end of it is closed."""
        self._selector.close()

    async def _close(self) -> None:
        for free in self._free.values():
            for link in free:
                link.close()
        self._free.clear()

    async def _linked(
        self, asked: Mapping[int, tuple[Address, bytes, list[Buffer]]], patience: float
    ) -> list[_Link | UnreachableError]:
        found: dict[int, _Link | UnreachableError | None] = {
            site: self._kept(address, key) for site, (address, key, _) in asked.items()
        }
        missing = [site for site, link in found.items() if link is None]
        if missing:
            made = await asyncio.gather(*(self._made(*asked[site][:2], patience) for site in missing))
            found |= zip(missing, made, strict=True)
        return [link for link in found.values() if link is not None]

    def _kept(self, address: Address, key: bytes) -> _Link | None:
        free = self._free[address, key]
        while free:
            if not (link := free.pop()).lost:
                return link
            link.close()
        return None

    async def _made(self, address: Address, key: bytes, patience: float) -> _Link | UnreachableError:
        # Sites that are gone leave none behind.
        for other in [other for other, free in self._free.items() if all(link.lost for link in free)]:
            for link in self._free.pop(other):
                link.close()
        try:
            async with asyncio.timeout(min(CONNECT, patience)):
                return await _Link.made(address, key)
        except (OSError, EOFError) as error:
            return UnreachableError(str(error) or type(error).__name__)


_lock = threading.Lock()
_links: Links | None = None
_parents: list[Links] = []


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
    if _links is not None:
        _links.leave()
        # To be collected would be to close them.
        _parents.append(_links)
    _links, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
