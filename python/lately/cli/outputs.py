"""Outputs: files, which are replaced whole or not at all, and streams, which are written at once."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from lately.cli.errors import optional
from lately.cli.inputs import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO


class Output:
    """Output of records, compressed by the extension of its name.

    A file is written under a temporary name beside it. `finish` flushes it to the disk, and `replace` replaces the old
    file, which is unchanged until then. Standard output (``-``), devices and pipes are written directly.

    Attributes
    ----------
    stream : binary file
        The file to write to.
    path : Path or None
        The file to replace, with links followed; None for a stream.
    """

    def __init__(self, name: str) -> None:
        self.path: Path | None = None
        self._temporary: Path | None = None
        descriptor = descriptor_of(name)
        target = Path(name).resolve()  # so that a link remains a link
        if descriptor is not None:
            # A separate buffer over a copy of the descriptor. When the reader has gone, the buffer and its contents can
            # be discarded. The interpreter would try to write the contents of `sys.stdout` again as it ends.
            self._file = os.fdopen(os.dup(descriptor), "wb")
        elif target.exists() and not target.is_file():
            self._file = target.open("wb")
        else:
            self.path, self._temporary = target, beside(target)
            self._file = self._temporary.open("xb")
            if target.exists():
                self._temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        self.stream: BinaryIO = self._file
        try:
            self.stream = _compressed(self._file, name)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close what is open, and remove a temporary file that has not replaced the file."""
        for stream in (self.stream, self._file):
            with suppress(OSError, ValueError):  # reported before
                stream.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)

    def flush(self) -> None:
        """Flush a stream, because its reader may wait for the records."""
        if self.path is None:
            self.stream.flush()
            self._file.flush()

    def finish(self) -> None:
        """Flush everything to the reader or to the disk, and close."""
        if self.stream is not self._file:
            self.stream.close()
        self._file.flush()
        if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            os.fsync(self._file.fileno())
        self._file.close()

    def written(self) -> list[Any]:
        """Return path and identity of the finished file, as JSON. The identity changes with the contents."""
        assert self._temporary is not None
        return [str(self.path), *identity(self._temporary.stat())]

    def replace(self) -> None:
        """Replace the old file, durably."""
        if self.path is not None and self._temporary is not None:
            self._temporary.replace(self.path)
            self._temporary = None
            sync_folder(self.path.parent)


def descriptor_of(name: str) -> int | None:
    """Return the descriptor of this process that a name refers to: ``-``, ``/dev/stdout``, ``/dev/fd/3`` or a link.

    If the shell has redirected the descriptor to a file, opening it by name would truncate the file, and replacing it
    would separate the file from the shell's.
    """
    if name == "-":
        return 1
    path = Path(name).absolute()
    for _ in range(40):  # Linux follows no more links
        if found := re.fullmatch(rf"(?:/dev/fd|/proc/(?:self|thread-self|{os.getpid()})/fd)/(\d+)", str(path)):
            return int(found[1])
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def beside(path: Path) -> Path:
    """Return the name of a temporary file beside the file that it will replace."""
    return path.with_name(f".lately-{os.urandom(8).hex()}.tmp")


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def compression(name: str) -> str:
    """Return the extension of a compressed file, or an empty string."""
    extension = Path(name).suffix.lower()
    return extension if extension in _CODECS else ""


def _compressed(file: BinaryIO, name: str) -> Any:
    codec = _CODECS.get(compression(name))
    return codec(file, name) if codec else file


# Each of these imports its library only when it is used.


def _gzip(file: BinaryIO, _name: str) -> Any:
    from gzip import GzipFile

    return GzipFile("", "wb", 6, file)


def _zstd(file: BinaryIO, name: str) -> Any:
    compressor = optional("zstandard", f"{name}: zstd").ZstdCompressor()
    return compressor.stream_writer(file, closefd=False)


def _xz(file: BinaryIO, _name: str) -> Any:
    from lzma import LZMAFile

    return LZMAFile(file, "wb")


def _bzip2(file: BinaryIO, _name: str) -> Any:
    from bz2 import BZ2File

    return BZ2File(file, "wb")


_CODECS: dict[str, Callable[[BinaryIO, str], Any]] = {
    ".gz": _gzip,
    ".zst": _zstd,
    ".zstd": _zstd,
    ".xz": _xz,
    ".bz2": _bzip2,
}
