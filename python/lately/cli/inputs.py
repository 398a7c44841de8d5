"""Inputs: files and streams, decompressed, in constant memory."""

from __future__ import annotations

import os
import stat
from io import FileIO
from pathlib import Path

from lately.cli.errors import CliError, DamagedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from lately.cli.decoders import Decoder

BLOCK = 1 << 20
"""Bytes that are read at a time; their records make up to one batch."""

_CHUNK = 1 << 16  # compressed bytes read at a time

# First bytes of compressed files.
_CODECS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\0": "xz",
    # Text may begin with BZh. In a bzip2 file a digit and digits of pi follow.
    **{b"BZh%d1AY&SY" % level: "bzip2" for level in range(1, 10)},
}


class Input:
    """A file, or standard input for ``-``. It is decompressed if it begins as gzip, zstd, xz or bzip2 does.

    `advance` is called with the number of bytes read from the file, for the progress bar.
    """

    def __init__(self, name: str, advance: Callable[[int], object], *, digest: bool = False) -> None:
        self._raw = FileIO(0, closefd=False) if name == "-" else FileIO(name)
        self._name = name
        self._advance = advance
        self._status = os.fstat(self._raw.fileno())
        self._regular = stat.S_ISREG(self._status.st_mode)
        self._digest: Any = None
        if digest and not self._regular:
            from hashlib import blake2b

            self._digest = blake2b(digest_size=16)
        self._rest = b""
        # A pipe may give one byte at a time, and pause after any of them.
        while any(magic.startswith(self._rest) and magic != self._rest for magic in _CODECS):
            if not (more := self._read(8)):
                break
            self._rest += more
        self._codec = next((codec for magic, codec in _CODECS.items() if self._rest.startswith(magic)), None)
        self._frame: Decoder | None = None

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def read(self, size: int, *, wait: bool = True) -> bytes:
        """Return the bytes that are available, at most `size` of them.

        The result is empty at the end of the input, and without `wait` also if no bytes are available yet.

        Raises
        ------
        OSError
            If the file cannot be read.
        DamagedError
            If compressed data is damaged or incomplete.
        """
        while True:
            hungry = self._frame is None or self._frame.needs_input
            data, self._rest = self._rest, b""
            if hungry and not data:
                if not wait and not self._ready():
                    return b""
                data = self._read(_CHUNK if self._codec else size)
            if self._codec is None:
                return data
            if self._frame is None:
                if not data:
                    return b""
                data = data.lstrip(b"\0")  # padding, on tapes and by xz
                if not data:
                    continue
                from lately.cli.decoders import decoder

                self._frame, self._damage = decoder(self._codec, self._name)
            try:
                plain = self._frame.decompress(data, size)
            except self._damage as error:
                raise DamagedError(str(error)) from None
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data, None
            elif hungry and not data and not plain:
                raise DamagedError("it is incomplete")
            if plain:
                return plain

    def _ready(self) -> bool:
        """Whether bytes, or the end of the file, are available."""
        if self._regular:
            return True
        from select import select

        return bool(select([self._raw], [], [], 0)[0])

    def identity(self) -> list[Any]:
        """Return what identifies this input: for a regular file its status, else a digest of all bytes read."""
        if self._digest is not None:
            return [self._digest.hexdigest()]
        return [_place(self._name), *identity(self._status)]

    def _read(self, size: int) -> bytes:
        data = self._raw.read(size) or b""
        self._advance(len(data))
        if self._digest is not None:
            self._digest.update(data)
        return data


def identity_of(name: str) -> list[Any] | None:
    """Return the identity of an input before it is read, or None if it is not a regular file."""
    status = os.fstat(0) if name == "-" else Path(name).stat()
    return [_place(name), *identity(status)] if stat.S_ISREG(status.st_mode) else None


def _place(name: str) -> str:
    return name if name == "-" else str(Path(name).resolve())


def identity(status: os.stat_result) -> list[int]:
    """Return numbers that identify a file and its contents: they change when the file does."""
    return [status.st_ino, status.st_size, status.st_mtime_ns]


def blocks(file: Input, longest: int) -> Iterator[bytes]:
    """Yield blocks of whole lines: about `BLOCK` bytes, or fewer if no more are available.

    The last line may lack its end. The middle of a line longer than `longest` bytes may be missing; what remains is
    still longer than that.
    """
    incomplete: list[bytes] = []
    size = 0
    while data := _gathered(file):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*incomplete, memoryview(data)[:cut]])
            incomplete, size, data = [], 0, data[cut:]
        if size <= longest:
            incomplete.append(data)
            size += len(data)
    if size:
        yield b"".join(incomplete)


def _gathered(file: Input) -> bytes:
    """Return available bytes, up to a block; empty at the end."""
    parts: list[bytes] = []
    size = 0
    while size < BLOCK and (data := file.read(BLOCK - size, wait=not parts)):
        parts.append(data)
        size += len(data)
    return b"".join(parts)


def size(name: str) -> int | None:
    """Return the size of a file, or None for standard input and pipes; `CliError` if it does not exist."""
    try:
        status = os.fstat(0) if name == "-" else Path(name).stat()
    except OSError as error:
        raise CliError(f"{name}: {error.strerror}") from None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
