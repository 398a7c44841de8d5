"""Bytes out: files that are replaced whole or not at all, and streams that are written to as records are decided."""

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
    """Where records go, compressed as the name says.

    A file is written under a temporary name beside it. `finish` brings it to the disk and `replace` puts it in place;
    what was there stays until then. Standard output (``-``), devices and pipes are written to directly.

    Attributes
    ----------
    stream : binary file
        To write to.
    path : Path or None
        The file to replace, with links followed.
    """

    def __init__(self, name: str) -> None:
        self.path: Path | None = None
        self._temporary: Path | None = None
        descriptor = descriptor_of(name)
        target = Path(name).resolve()  # a link stays a link
        if descriptor is not None:
            # A buffer of its own over a copy of the descriptor: once the reader has gone, it can be thrown away with
            # what it holds, which that of `sys.stdout` would try to write again when the interpreter ends.
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
        """Close what is open, and remove what has not replaced anything."""
        for stream in (self.stream, self._file):
            with suppress(OSError, ValueError):  # said already; closed all the same
                stream.close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)

    def flush(self) -> None:
        """Hand on what is written, where somebody may be waiting for it."""
        if self.path is None:
            self.stream.flush()
            self._file.flush()

    def finish(self) -> None:
        """Hand on all of it, or bring it to the disk; nothing is written after that."""
        if self.stream is not self._file:
            self.stream.close()
        self._file.flush()
        if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            os.fsync(self._file.fileno())
        self._file.close()

    def written(self) -> list[Any]:
        """What tells the file, finished, from what it is before or will be later."""
        assert self._temporary is not None
        return [str(self.path), *identity(self._temporary.stat())]

    def replace(self) -> None:
        """Put a file in place, for good."""
        if self.path is not None and self._temporary is not None:
            self._temporary.replace(self.path)
            self._temporary = None
            sync_folder(self.path.parent)


def descriptor_of(name: str) -> int | None:
    """Tell the descriptor of this process that a name means: ``-``, ``/dev/stdout``, ``/dev/fd/3`` or a link to one.

    To open it by that name would truncate a file that the shell has redirected it to, and to replace it would cut the
    file off from the shell.
    """
    if name == "-":
        return 1
    path = Path(name).absolute()
    for _ in range(40):  # as many links as Linux follows
        if found := re.fullmatch(rf"(?:/dev/fd|/proc/(?:self|thread-self|{os.getpid()})/fd)/(\d+)", str(path)):
            return int(found[1])
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def beside(path: Path) -> Path:
    """Give the name of a temporary file that is to replace another."""
    return path.with_name(f".lately-{os.urandom(8).hex()}.tmp")


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk; where folders cannot be synced they are as safe as they can be."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def compression(name: str) -> str:
    """Tell the extension that says how a file is compressed, or an empty one."""
    extension = Path(name).suffix.lower()
    return extension if extension in _CODECS else ""


def _compressed(file: BinaryIO, name: str) -> Any:
    codec = _CODECS.get(compression(name))
    return codec(file, name) if codec else file


# What is compressed imports what compresses it.


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
