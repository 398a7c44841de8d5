"""Stores for claims of keys: memory for one process, a small SQLite file for several."""

from __future__ import annotations

import os
import secrets
import stat
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path

from lately._core import ExactFilter, Filter, hash_keys, shared_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Any, Literal, TypeVar

    _Outcome = Literal["first", "done", "busy"]
    _Result = TypeVar("_Result")

_PATIENCE = 30.0
"""Seconds to wait for another process that reads or writes the file of claims. It needs microseconds."""


class Owner:
    """Owner of one claim, by a number that no other process draws."""

    __slots__ = ("__weakref__", "number")

    def __init__(self) -> None:
        self.number = secrets.token_hex(8)


class PrivateClaims:
    """Claims of a filter in one process, in memory.

    A claim ends with its block, or when its owner is gone, because an interrupt may come before the block begins. When
    a process dies, its filter is gone too, so claims need no lease.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(16)
        self._held: weakref.WeakValueDictionary[int, Owner] = weakref.WeakValueDictionary()
        self.lock = threading.RLock()

    def hash(self, key: Any) -> int:
        """Return the hash of a key for claims."""
        return int(hash_keys([key], seed=self._secret)[0])

    def take(self, key: int, owner: Owner, lease: float, done: Callable[[], bool]) -> _Outcome:
        """Claim a key for `owner`, unless it has a claim or its work is done."""
        with self.lock:
            if key in self._held:
                return "busy"
            if done():
                return "done"
            self._held[key] = owner
            return "first"

    def end(self, key: int, owner: Owner) -> None:
        """End the claim of `owner`, if it exists."""
        with self.lock:
            if self._held.get(key) is owner:
                del self._held[key]

    def before_fork(self) -> None:
        """Wait until no thread changes the claims, and keep others out."""
        self.lock.acquire()

    def after_fork(self, *, child: bool) -> None:
        """Let threads in again. A child process has its own filter, and no thread of it holds a claim."""
        if child:
            self._held.clear()
        self.lock.release()


class SharedClaims:
    """Claims of a filter that several processes share, in an SQLite file beside the filter's.

    Each change is one transaction, so a process that is killed leaves it done or undone. A claim ends with its block,
    or when its lease is over. The system's monotonic clock measures leases; all processes of a machine share it, and it
    starts at 0 with the machine. Therefore a claim whose beginning lies in the future was made before the last start of
    the machine, and has ended.
    """

    def __init__(self, path: str) -> None:
        self._path = f"{path}.claims"
        # The users who may use the filter may claim its keys. No other user may read the secret of the hashes.
        self._mode = stat.S_IMODE(Path(path).stat().st_mode)
        self._file: sqlite3.Connection | None = None
        self._secret = b""
        self.lock = threading.RLock()

    def hash(self, key: Any) -> int:
        """Return the hash of a key for claims, as a signed 64-bit integer, which is what SQLite stores."""

        def draw(file: sqlite3.Connection) -> bytes:
            file.execute("INSERT OR IGNORE INTO secret VALUES (0, ?)", (secrets.token_bytes(16),))
            secret: bytes = file.execute("SELECT bytes FROM secret").fetchone()[0]
            return secret

        if not self._secret:
            self._secret = self._in_transaction(draw)
        return int(hash_keys([key], seed=self._secret).view("int64")[0])

    def take(self, key: int, owner: Owner, lease: float, done: Callable[[], bool]) -> _Outcome:
        """Claim a key for `owner`, unless it has a claim or its work is done."""

        def claim(file: sqlite3.Connection) -> _Outcome:
            # Read within the transaction, so that no earlier claim seems to begin in the future.
            now = time.monotonic()
            file.execute("DELETE FROM claims WHERE ends <= ? OR begins > ?", (now, now))
            if file.execute("SELECT 1 FROM claims WHERE key = ?", (key,)).fetchone():
                return "busy"
            # A claim ends after its key was inserted. Without a claim, no insertion is under way.
            if done():
                return "done"
            file.execute("INSERT INTO claims VALUES (?, ?, ?, ?)", (key, owner.number, now, now + lease))
            return "first"

        return "done" if done() else self._in_transaction(claim)

    def end(self, key: int, owner: Owner) -> None:
        """End the claim of `owner`, if it exists."""
        delete = "DELETE FROM claims WHERE key = ? AND owner = ?"
        self._in_transaction(lambda file: file.execute(delete, (key, owner.number)))

    def before_fork(self) -> None:
        """Close the file, because a connection of SQLite does not survive a fork."""
        self.lock.acquire()
        if self._file is not None:
            self._file.close()
            self._file = None

    def after_fork(self, *, child: bool) -> None:
        """Let threads in again; the next transaction opens the file."""
        self.lock.release()

    def _in_transaction(self, change: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Change the file in one transaction. An interrupt at any step leaves none open.

        Raises
        ------
        OSError
            If the file cannot be read or written.
        """
        import sqlite3

        with self.lock:
            try:
                if self._file is None:
                    self._file = _opened(self._path, self._mode)
                self._file.execute("BEGIN IMMEDIATE")
                result = change(self._file)
                self._file.execute("COMMIT")
                return result
            except sqlite3.Error as error:
                raise OSError(f"cannot use the file of claims {self._path}: {error}") from error
            finally:
                if self._file is not None and self._file.in_transaction:
                    self._file.execute("ROLLBACK")


def _opened(path: str, mode: int) -> sqlite3.Connection:
    """Open the file of claims, or create it with this mode. SQLite gives the mode to the log beside it too."""
    import sqlite3

    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode & 0o600))
        Path(path).chmod(mode)
    file = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            # With a write-ahead log no transaction waits for the disk, and a crash of the machine damages nothing.
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = NORMAL")
            file.execute("CREATE TABLE IF NOT EXISTS secret (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)")
            file.execute(
                "CREATE TABLE IF NOT EXISTS claims "
                "(key INTEGER PRIMARY KEY, owner TEXT NOT NULL, begins REAL NOT NULL, ends REAL NOT NULL)"
            )
            return file
        except sqlite3.OperationalError as error:
            # SQLite does not wait while several processes create the file at once.
            if "locked" not in str(error) or time.monotonic() > deadline:
                file.close()
                raise
            time.sleep(0.01)


# Claims by the id of their filter, while the filter exists. A filter has no hash, and its copies and pickles have no
# claims.
_LOCK = threading.RLock()
_BY_FILTER: dict[int, tuple[weakref.ref[Any], PrivateClaims | SharedClaims]] = {}
_FORKING: list[PrivateClaims | SharedClaims] = []


def claims_of(filter: Filter | ExactFilter) -> PrivateClaims | SharedClaims:
    """Return the claims of a filter. Processes that share a filter share its claims."""
    number = id(filter)
    with _LOCK:
        found = _BY_FILTER.get(number)
        if found is None or found[0]() is not filter:
            path = shared_path(filter) if isinstance(filter, Filter) else None
            store = PrivateClaims() if path is None else SharedClaims(os.path.realpath(path))
            found = weakref.ref(filter, lambda gone: _forget(number, gone)), store
            _BY_FILTER[number] = found
        return found[1]


def _forget(number: int, gone: weakref.ref[Any]) -> None:
    # Without the lock, because the garbage collector may call this within any of the methods above.
    found = _BY_FILTER.get(number)
    if found is not None and found[0] is gone:
        del _BY_FILTER[number]


def _before_fork() -> None:
    _LOCK.acquire()
    _FORKING[:] = [store for _, store in list(_BY_FILTER.values())]
    for store in _FORKING:
        store.before_fork()


def _after_fork(*, child: bool) -> None:
    for store in _FORKING:
        store.after_fork(child=child)
    _FORKING.clear()
    _LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(child=False),
        after_in_child=lambda: _after_fork(child=True),
    )
