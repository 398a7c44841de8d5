"""What a site listens with: a port on its node, for producers that know the key of the site."""

import hmac
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

from lately.distributed._sites.frames import LENGTHS, framed, opened
from lately.distributed._sites.wire import GREETING, NONCE, proof, refusal

Address = tuple[str, int]

PATIENCE = 5.0
"""Seconds that a stranger has to prove who he is."""


class Listener:
    """A port that answers requests, each connection by a thread of its own.

    Parameters
    ----------
    host : str
        The address of this node among the others.
    key : bytes
        What producers must know.
    answer : callable
        Called with what a request holds; what it gives is the answer, what it raises too.

    Attributes
    ----------
    address : (str, int)
        Host and port.

    Raises
    ------
    OSError
        If no port can be had.
    """

    def __init__(self, host: str, key: bytes, answer: Callable[[Any], Any]) -> None:
        self._server = _Server((host, 0), _Handler)
        self._server.key, self._server.answer = key, answer
        self.address: Address = (host, self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name=f"port {self.address[1]}", daemon=True).start()

    def close(self) -> None:
        """Take no more connections. Those that are there end with their producers, or with this process."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingTCPServer):
    key: bytes
    answer: Callable[[Any], Any]
    daemon_threads = True
    block_on_close = False
    # Producers may all come at once, after a restart.
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that is lost, or of a stranger's."""


class _Handler(StreamRequestHandler):
    disable_nagle_algorithm = True
    timeout = PATIENCE
    server: _Server

    def handle(self) -> None:
        """Answer requests until the connection is lost."""
        ours = secrets.token_bytes(NONCE)
        self.wfile.write(GREETING + ours)
        theirs, shown = self.rfile.read(NONCE), self.rfile.read(NONCE)
        if not hmac.compare_digest(shown, proof(self.server.key, b"producer", ours, theirs)):
            return
        self.wfile.write(proof(self.server.key, b"site", theirs, ours))
        # A producer may be silent for days; one whose machine is gone is found out.
        self.connection.settimeout(None)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        with suppress(ConnectionError):
            while len(lengths := self.rfile.read(LENGTHS.size)) == LENGTHS.size:
                self._answer(*LENGTHS.unpack(lengths))

    def _answer(self, head: int, arrays: int) -> None:
        request = self.rfile.read(head), self.rfile.read(arrays)
        if len(request[1]) < arrays or len(request[0]) < head:
            raise ConnectionError("the producer is gone")
        try:
            frame = framed(self.server.answer(opened(*request)))
        except Exception as error:
            frame = framed(refusal(error))
        self.wfile.write(b"".join(frame))
