"""Incarnations of an actor: at most one of them answers, even if the cluster has lost track of an earlier one.

When a node is cut off, Ray starts its actors again elsewhere, while their old processes may live on. So each process of
an actor claims a number in the key-value store of the cluster, and compares it every `CONFIRM` seconds. A process that
finds a later number ends itself. A process that has not compared for `TRUST` seconds, because it was suspended or
cannot reach the cluster, answers nothing. Its successor waits as long before it begins, unless the old port is closed.
"""

import json
import os
import socket
import threading
import time
from typing import Any

from lately.distributed._ray import imported
from lately.distributed._sites.errors import ReplacedError
from lately.distributed._sites.port import Address

# Seconds between two comparisons with the store.
CONFIRM = 1.0
# Seconds for which a comparison is valid.
TRUST = 5.0


class Incarnation:
    """The number of this process of an actor: 1 for the first, and one more for each successor."""

    def __init__(self, actor: str) -> None:
        self._actor = actor
        self.number = 1 + max(
            (int(key.rpartition(b"/")[2]) for key in _store()._internal_kv_list(f"{actor}/")), default=0
        )
        while _store()._internal_kv_put(self._key(self.number), b"null", overwrite=False):
            self.number += 1
        self._confirmed = time.monotonic()
        threading.Thread(target=self._keep_confirming, name="incarnation", daemon=True).start()
        if self.number > 1 and not self._predecessor_ended():
            time.sleep(TRUST)

    def publish(self, port: Address | None) -> None:
        """Store the address of the port, which shows a successor whether this process has ended."""
        _store()._internal_kv_put(self._key(self.number), json.dumps(port), overwrite=True)

    def check(self) -> None:
        """Raise `ReplacedError` if this process may have been replaced."""
        if time.monotonic() - self._confirmed > TRUST:
            raise ReplacedError("this process has not reached the cluster lately, and may have been replaced")

    def _keep_confirming(self) -> None:
        while True:
            began = time.monotonic()
            try:
                replaced = _store()._internal_kv_get(self._key(self.number + 1)) is not None
            except Exception:
                # The cluster cannot be reached, or is restarting.
                time.sleep(CONFIRM)
                continue
            if replaced:
                os._exit(0)
            self._confirmed = began
            time.sleep(CONFIRM)

    def _predecessor_ended(self) -> bool:
        """Return whether the predecessor's port is closed on a node that is reachable."""
        port = json.loads(_store()._internal_kv_get(self._key(self.number - 1)) or b"null")
        if port is None:
            return False
        try:
            socket.create_connection(tuple(port), timeout=1).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            pass
        return False

    def _key(self, number: int) -> str:
        return f"{self._actor}/{number}"


def forget(prefix: str) -> None:
    """Remove the incarnations of all actors of a filter that has ended."""
    _store()._internal_kv_del(prefix, del_by_prefix=True)


def _store() -> Any:
    return imported("ray.experimental.internal_kv")
