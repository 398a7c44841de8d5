"""Where sites keep their checkpoints: a folder, or whatever address fsspec opens."""

import io
import os
import secrets
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lately.distributed._sites.results import State


class Store(Protocol):
    """A place for named bytes, each written whole or not at all."""

    def write(self, name: str, data: bytes) -> None:
        """Replace what is there under a name; a reader gets the old bytes or the new ones."""
        ...

    def read(self, name: str) -> bytes | None:
        """Read what is there under a name, or None."""
        ...

    def append(self, name: str, data: bytes) -> bool:
        """Add to what is there under a name, or return False where the store cannot; what is cut off stays cut off."""
        ...

    def remove(self, name: str) -> None:
        """Remove what is there under a name, if anything is."""
        ...


class Folder:
    """A folder of a file system."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, data: bytes) -> None:
        """Write under another name, sync, rename, and sync that."""
        passing = self.path / _passing(name)
        try:
            with passing.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            passing.replace(self.path / name)
        except BaseException:
            passing.unlink(missing_ok=True)
            raise
        self._sync()

    def append(self, name: str, data: bytes) -> bool:
        """Append, and sync."""
        path = self.path / name
        new = not path.exists()
        with path.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if new:
            self._sync()
        return True

    def _sync(self) -> None:
        if os.name == "posix":
            folder = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def read(self, name: str) -> bytes | None:
        """Read a file, or None where there is none."""
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
        """Write under another name, then move: object stores put whole objects, and others rename."""
        passing = f"{self._root}/{_passing(name)}"
        try:
            self._files.pipe_file(passing, data)
            self._files.mv(passing, f"{self._root}/{name}")
        except BaseException:
            with suppress(Exception):
                self._files.rm_file(passing)
            raise

    def read(self, name: str) -> bytes | None:
        """Read an object, or None where there is none."""
        try:
            data: bytes = self._files.cat_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return None
        return data

    def append(self, name: str, data: bytes) -> bool:
        """Do nothing: object stores put whole objects."""
        return False

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""
        with suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{name}")


def store(address: str | os.PathLike[str]) -> Store:
    """Make the store for a folder or an address."""
    if isinstance(address, str):
        address = address.removeprefix("file://")
        if "://" in address:
            return Remote(address)
    return Folder(address)


_MAGIC = b"lately sites v3\n"


def pack(state: Mapping[str, NDArray[Any]]) -> bytes:
    """Put arrays into bytes: a line that describes them, their hash, and an uncompressed archive of NumPy's.

    The archive has checksums of its arrays, but not of their names and sizes.
    """
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **state)
    data = buffer.getbuffer()
    return b"".join((_MAGIC, blake2b(data, digest_size=16).digest(), data))


def unpack(data: bytes) -> State:
    """Take them out again; nothing in the bytes is ever executed.

    Raises
    ------
    ValueError
        If they are damaged, or something else.
    """
    magic, digest, archive = data[:16], data[16:32], memoryview(data)[32:]
    if magic != _MAGIC:
        raise ValueError(f"this is no checkpoint of a site: it begins with {magic!r}")
    if blake2b(archive, digest_size=16).digest() != digest:
        raise ValueError("the checkpoint is damaged: its hash is another")
    try:
        with np.load(io.BytesIO(archive), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError, OSError) as error:
        raise ValueError(f"the checkpoint is damaged: {error}") from None


def _passing(name: str) -> str:
    """Name a file that is being written: always another, since a site that seems dead may still write."""
    return f"{name}.{secrets.token_hex(4)}.part"
