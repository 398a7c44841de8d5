"""Bytes in and out: compression, progress, and files that are replaced whole or not at all."""

import contextlib
import gzip
import io
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from lately.cli.errors import CliError, optional

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BUFFER = 1 << 20
# Compressed bytes decoded at a time. Logs shrink to a tenth and less, the worst input to 1/20,000: 320 MB then.
_ZSTD_CHUNK = 1 << 14


def open_input(name: str, advance: Callable[[int], object]) -> io.BufferedReader:
    """Open a file, or standard input for ``-``, and decompress it if it begins as gzip or zstd does.

    `advance` is told of the bytes read as they lie in the file, for the progress bar.
    """
    raw = io.FileIO(0, closefd=False) if name == "-" else io.FileIO(name)
    counted = _Counted(raw, advance)
    if counted.head.startswith(_GZIP):
        return io.BufferedReader(
            cast(io.RawIOBase, gzip.GzipFile(fileobj=io.BufferedReader(counted, _BUFFER))), _BUFFER
        )
    if counted.head.startswith(_ZSTD):
        return io.BufferedReader(_Zstd(counted, optional("zstandard", f"{name}: zstd")), _BUFFER)
    return io.BufferedReader(counted, _BUFFER)


class _Counted(io.RawIOBase):
    """A raw stream whose first bytes have been looked at, and whose bytes are counted as they are read."""

    def __init__(self, raw: io.RawIOBase, advance: Callable[[int], object]) -> None:
        self._raw = raw
        self._advance = advance
        self.head = b""
        while len(self.head) < 4 and (more := raw.read(4 - len(self.head))):  # a pipe may give one byte at a time
            self.head += more
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._given < len(self.head):
            count = min(len(buffer), len(self.head) - self._given)
            buffer[:count] = self.head[self._given : self._given + count]
            self._given += count
        else:
            count = self._raw.readinto(buffer) or 0
        self._advance(count)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Zstd(io.RawIOBase):
    """Decompressed zstd frames, one after the other.

    The reader that comes with zstandard ends in silence where a file was cut off; this one raises EOFError.
    """

    def __init__(self, source: io.RawIOBase, zstandard: Any) -> None:
        self._source = source
        self._zstandard = zstandard
        self._frame: Any = None
        self._compressed = b""
        self._plain = memoryview(b"")
        self._inside = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._plain:
            chunk = self._compressed or self._source.read(_ZSTD_CHUNK)
            if not chunk:
                if self._inside:
                    raise EOFError("the zstd data ends in the middle of a frame")
                return 0
            if not self._inside:
                self._frame = self._zstandard.ZstdDecompressor().decompressobj()
            try:
                self._plain = memoryview(self._frame.decompress(chunk))
            except self._zstandard.ZstdError as error:
                raise OSError(f"damaged zstd data: {error}") from None
            self._inside = not self._frame.eof
            self._compressed = self._frame.unused_data
        count = min(len(buffer), len(self._plain))
        buffer[:count] = self._plain[:count]
        self._plain = self._plain[count:]
        return count

    def close(self) -> None:
        self._source.close()
        super().close()


@contextlib.contextmanager
def open_output(name: str) -> Iterator[BinaryIO]:
    """Open the output: compressed as its extension says, and in place only once all of it is on disk.

    A file is written under a temporary name beside it and renamed at the end; any error, Ctrl-C among them, removes
    the temporary one and leaves what was there. Standard output (``-``), devices and pipes are written to directly.
    """
    if name == "-":
        # An own buffer over a copy of the descriptor: once the reader has gone, it can be thrown away with what it
        # holds, which that of `sys.stdout` would try to write again when the interpreter ends.
        with _direct(os.fdopen(os.dup(1), "wb")) as stream:
            yield stream
        return
    target = Path(name).resolve()  # a link stays a link
    if target.exists() and not target.is_file():
        with _direct(target.open("wb")) as stream, _compressed(stream, name) as plain:
            yield plain
        return
    temporary = target.with_name(f".lately-{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as stream:
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            with _compressed(stream, name) as plain:
                yield plain
            stream.flush()
            os.fsync(descriptor)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _direct(stream: BinaryIO) -> Iterator[BinaryIO]:
    try:
        yield stream
        stream.close()
    finally:
        with contextlib.suppress(OSError):  # said already; closed all the same
            stream.close()


@contextlib.contextmanager
def _compressed(stream: BinaryIO, name: str) -> Iterator[BinaryIO]:
    extension = compression(name)
    if extension == ".gz":
        with gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=6) as plain:
            yield cast(BinaryIO, plain)
    elif extension:
        zstandard = optional("zstandard", f"{name}: zstd")
        with zstandard.ZstdCompressor().stream_writer(stream, closefd=False) as plain:
            yield plain
    else:
        yield stream


def compression(name: str) -> str:
    """Tell the extension that says how a file is compressed, or an empty one."""
    extension = Path(name).suffix.lower()
    return extension if extension in (".gz", ".zst", ".zstd") else ""


def size(name: str) -> int | None:
    """Bytes of a file as it lies there; None for standard input and pipes. Raises if there is none to read."""
    try:
        status = os.fstat(0) if name == "-" else Path(name).stat()
    except OSError as error:
        raise CliError(f"{name}: {error.strerror}") from None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
