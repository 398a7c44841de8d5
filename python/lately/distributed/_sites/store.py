"""Stores for the checkpoints of sites: a folder, or an address that fsspec opens."""

import os
import secrets
import weakref
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:
    # Another system has no locks that end with their process.
    fcntl = None  # type: ignore[assignment]


class Hold:
    """A file that a process holds for an owner, until it is released or the process ends."""

    def __init__(self, path: Path, owner: str, *, new: bool) -> None:
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        self.release = weakref.finalize(self, os.close, file)
        try:
            if new:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(file, 0)
                os.pwrite(file, owner.encode(), 0)
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.pread(file, len(owner) + 1, 0) != owner.encode():
                raise BlockingIOError
        except BaseException:
            self.release()
            raise


class Folder:
    """A folder of a file system. Files in it are written whole or not at all."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, data: bytes) -> None:
        """Write to another name, sync, rename, and sync the folder."""
        passing = self.path / _passing(name)
        try:
            _put(passing, "wb", data)
            passing.replace(self.path / name)
        except BaseException:
            passing.unlink(missing_ok=True)
            raise
        self._sync()

    def append(self, name: str, data: bytes) -> bool:
        """Append data to a file, and sync it."""
        path = self.path / name
        new = not path.exists()
        _put(path, "ab", data)
        if new:
            self._sync()
        return True

    def hold(self, name: str, owner: str, *, new: bool) -> Hold | None:
        """Hold a file; raise `BlockingIOError` if processes of another owner do.

        An owner begins with ``new=True``. Later processes of that owner join it. None where a file system has no locks.
        """
        try:
            return None if fcntl is None else Hold(self.path / name, owner, new=new)
        except BlockingIOError:
            raise
        except OSError:
            return None

    def _sync(self) -> None:
        if os.name == "posix":
            folder = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def read(self, name: str) -> bytes | None:
        """Read a file; None if there is none."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.path / name).unlink(missing_ok=True)


class Remote:
    """An address that fsspec opens, such as ``s3://bucket/path``."""

    def __init__(self, address: str) -> None:
        try:
            import fsspec
        except ImportError:
            raise ImportError("checkpoints at an address need fsspec: pip install fsspec") from None
        self._files, self._root = fsspec.url_to_fs(address)
        self._files.makedirs(self._root, exist_ok=True)

    def write(self, name: str, data: bytes) -> None:
        """Write to another name, then move: object stores write whole objects, and other file systems rename."""
        passing = f"{self._root}/{_passing(name)}"
        try:
            self._files.pipe_file(passing, data)
            self._files.mv(passing, f"{self._root}/{name}")
        except BaseException:
            with suppress(Exception):
                self._files.rm_file(passing)
            raise

    def read(self, name: str) -> bytes | None:
        """Read an object; None if there is none."""
        try:
            data: bytes = self._files.cat_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return None
        return data

    def hold(self, name: str, owner: str, *, new: bool) -> Hold | None:
        """Do nothing: object stores have no locks that end with a process."""
        return None

    def append(self, name: str, data: bytes) -> bool:
        """Do nothing: object stores write only whole objects."""
        return False

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""
        with suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{name}")


Store = Folder | Remote


def store(address: str | os.PathLike[str]) -> Store:
    """Make the store for a folder or an address."""
    if isinstance(address, str):
        address = address.removeprefix("file://")
        if "://" in address:
            return Remote(address)
    return Folder(address)


def _put(path: Path, mode: str, data: bytes) -> None:
    """Write or append data to a file, and sync it."""
    with path.open(mode) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _passing(name: str) -> str:
    """Return a new name for a file that is being written, because a site that seems dead may still write."""
    return f"{name}.{secrets.token_hex(4)}.part"
