"""Outputs: files, which are replaced whole or not at all, and streams, which are written at once."""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from lately.cli.errors import optional

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO


_temporaries: set[Path] = set()


def remove_temporaries() -> None:
    """Remove temporary files that are left because a second signal came while the first one ended the run."""
    for temporary in _temporaries:
        temporary.unlink(missing_ok=True)
    _temporaries.clear()


class Replacement:
    """File that replaces another one whole or not at all. Until then it has a temporary name beside the old file.

    Attributes
    ----------
    path, temporary : Path
        The file to replace, and the temporary name.
    file : binary file
        The file to write to. It has the mode of the old one, or else the given one.
    """

    def __init__(self, path: Path, mode: int = 0o666) -> None:
        check_replaceable(path)
        self.path = path
        self.temporary = path.with_name(f".lately-{os.urandom(8).hex()}.tmp")
        _temporaries.add(self.temporary)
        self.file = os.fdopen(os.open(self.temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb")
        if path.exists():
            self.temporary.chmod(stat.S_IMODE(path.stat().st_mode))

    def finish(self) -> None:
        """Flush the file to the disk, and close it."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def replace(self) -> None:
        """Replace the old file, durably where the system can flush the names in a folder."""
        self.temporary.replace(self.path)
        with suppress(OSError):
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def close(self) -> None:
        """Close the file, and remove it if it has not replaced the old one."""
        with suppress(OSError):  # reported before
            self.file.close()
        self.temporary.unlink(missing_ok=True)
        _temporaries.discard(self.temporary)


def check_replaceable(path: Path) -> None:
    """Raise `OSError` for a file that is mounted alone, as containers mount files: no other file can take its place."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return  # not Linux
    escaped = re.sub(r"[ \t\n\\]", lambda character: f"\\{ord(character[0]):03o}", str(path))
    if escaped in (mount.split(" ")[4] for mount in mounts):
        reason = "the file is mounted alone, so it cannot be replaced: mount the folder that it is in"
        raise OSError(errno.EBUSY, reason)


class Output:
    """Output of records, compressed by the extension of its name.

    A file is replaced at the end. Standard output (``-``), devices and pipes are written directly.

    Attributes
    ----------
    stream : binary file
        The file to write to.
    replacement : Replacement or None
        The file that replaces another one, which links lead to; None for a stream.
    """

    def __init__(self, name: str) -> None:
        self.replacement: Replacement | None = None
        descriptor = descriptor_of(name)
        target = Path(name).resolve()  # so that a link remains a link
        if descriptor is not None:
            # A separate buffer over a copy of the descriptor. When the reader has gone, the buffer and its contents can
            # be discarded. The interpreter would try to write the contents of `sys.stdout` again as it ends.
            self._file = os.fdopen(os.dup(descriptor), "wb")
        elif target.exists() and not target.is_file():
            self._file = target.open("wb")
        else:
            self.replacement = Replacement(target)
            self._file = self.replacement.file
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
        if self.replacement:
            self.replacement.close()

    def flush(self) -> None:
        """Flush a stream, because its reader may wait for the records."""
        if self.replacement is None:
            self.stream.flush()
            self._file.flush()

    def finish(self) -> None:
        """Flush everything to the reader or to the disk, and close."""
        if self.stream is not self._file:
            self.stream.close()
        if self.replacement:
            self.replacement.finish()
            return
        self._file.flush()
        if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            os.fsync(self._file.fileno())
        self._file.close()


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


def compression(name: str) -> str:
    """Return the extension of a compressed file, or an empty string."""
    extension = Path(name).suffix.lower()
    return extension if extension in (".gz", ".zst", ".zstd", ".xz", ".bz2") else ""


def _compressed(file: BinaryIO, name: str) -> Any:
    """Return a file that writes compressed bytes to another. Each library is imported only when it is used."""
    extension = compression(name)
    if extension == ".gz":
        from gzip import GzipFile

        return GzipFile("", "wb", 6, file)
    if extension in (".zst", ".zstd"):
        return optional("zstandard", f"{name}: zstd").ZstdCompressor().stream_writer(file, closefd=False)
    if extension == ".xz":
        from lzma import LZMAFile

        return LZMAFile(file, "wb")
    if extension == ".bz2":
        from bz2 import BZ2File

        return BZ2File(file, "wb")
    return file
