"""Bytes in: decompressed, as they come, in memory that does not grow with them."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path

from lately.cli.errors import CliError, DamagedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from lately.cli.decoders import Decoder
    from lately.cli.signals import Stop

BLOCK = 1 << 20
"""Bytes read, and records judged together, at a time."""

_PAUSE = 0.1  # seconds between two looks at a file that is followed

_CHUNK = 1 << 16  # compressed bytes read at a time

# How what is compressed begins.
_CODECS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\0": "xz",
    # Text may begin with BZh; bzip2 goes on with a digit and digits of pi.
    **{b"BZh%d1AY&SY" % level: "bzip2" for level in range(1, 10)},
}


class Input:
    """A file, or standard input for ``-``, decompressed if it begins as gzip, zstd, xz or bzip2 does.

    `advance` is told of the bytes read as they lie in the file, for the progress bar. With `stop` the file is followed:
    at its end more is waited for, until `stop` is told, or the file was cut or another has taken its name.
    """

    def __init__(
        self, name: str, advance: Callable[[int], object], *, digest: bool = False, stop: Stop | None = None
    ) -> None:
        self._raw = FileIO(0, closefd=False) if name == "-" else FileIO(name)
        self._name = name
        self._advance = advance
        self._stop = stop
        self._status = os.fstat(self._raw.fileno())
        self._regular = stat.S_ISREG(self._status.st_mode)
        self._digest = _digest() if digest and not self._regular else None
        self._rest = b""
        # A pipe may give one byte at a time, and pause after any of them.
        while any(magic.startswith(self._rest) and magic != self._rest for magic in _CODECS):
            if not (more := self._read(8)):
                break
            self._rest += more
        self._codec = next((codec for magic, codec in _CODECS.items() if self._rest.startswith(magic)), None)
        self._frame: Decoder | None = None

    @property
    def stopped(self) -> bool:
        """Whether the file is followed, and was to end where it does not."""
        return self._stop is not None and self._stop.told

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def read(self, size: int, *, wait: bool = True) -> bytes:
        """Give what is at hand, at most `size` bytes.

        Nothing is at hand at the end, and without `wait` where more is still to come.

        Raises
        ------
        OSError
            If the file cannot be read.
        DamagedError
            If what is compressed is damaged or cut off.
        """
        while True:
            hungry = self._frame is None or self._frame.needs_input
            data, self._rest = self._rest, b""
            if hungry and not data:
                if not wait and not self._ready():
                    return b""
                data = self._read(_CHUNK if self._codec else size, wait=wait)
            if self._codec is None:
                return data
            if self._frame is None:
                if not data:
                    return b""
                data = data.lstrip(b"\0")  # files are padded with zeros, on tapes and by xz
                if not data:
                    continue
                self._frame = _decoder(self._codec, self._name)
            plain = self._frame.decompress(data, size)
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data, None
            elif hungry and not data and not plain:
                if self._stop:
                    return b""
                raise DamagedError("it ends in the middle")
            if plain:
                return plain

    def _ready(self, within: float = 0) -> bool:
        """Whether the file gives something, or its end, at once or soon."""
        if self._regular:
            return True
        from select import select

        return bool(select([self._raw], [], [], within)[0])

    def identity(self) -> list[Any]:
        """What tells this input from any other: of a regular file its state, else a digest of all that was read."""
        if self._digest is not None:
            return [self._digest.hexdigest()]
        return [_place(self._name), *identity(self._status)]

    def _next(self, size: int, wait: bool) -> bytes:
        """Read what is there; where the file is followed and has none, wait for more if `wait` says so."""
        if self._stop is None:
            return self._raw.read(size) or b""
        while not self._stop.told:
            if self._ready(_PAUSE):
                data = self._raw.read(size) or b""
                if data or not wait or self._ended():
                    return data
                time.sleep(_PAUSE)
        return b""

    def _ended(self) -> bool:
        """Whether nothing more comes of a file at its end: a pipe was closed, it was cut, or its name is another's."""
        if self._regular and os.fstat(self._raw.fileno()).st_size < self._raw.tell():
            return True
        if self._name == "-":
            return not self._regular
        with suppress(FileNotFoundError):  # the next one is not there yet
            return not os.path.samestat(Path(self._name).stat(), self._status)
        return False

    def _read(self, size: int, *, wait: bool = True) -> bytes:
        data = self._next(size, wait)
        self._advance(len(data))
        if self._digest is not None:
            self._digest.update(data)
        return data


def _digest() -> Any:
    from hashlib import blake2b

    return blake2b(digest_size=16)


def _decoder(codec: str, name: str) -> Decoder:
    from lately.cli.decoders import DECODERS

    return DECODERS[codec](name)


def known(name: str) -> list[Any] | None:
    """Tell the identity of an input that is not open yet; None where only reading it will tell."""
    status = os.fstat(0) if name == "-" else Path(name).stat()
    return [_place(name), *identity(status)] if stat.S_ISREG(status.st_mode) else None


def _place(name: str) -> str:
    return name if name == "-" else str(Path(name).resolve())


def identity(status: os.stat_result) -> list[int]:
    """What tells a file from what it was before or will be later."""
    return [status.st_ino, status.st_size, status.st_mtime_ns]


def blocks(file: Input, longest: int) -> Iterator[bytes]:
    """Whole lines, about `BLOCK` bytes of them; fewer where no more are at hand, and the last as it ends.

    The last line of a file that is followed is left if the run is told to end before that line does.

    Of a line longer than `longest` bytes the middle may be missing; so much of it is there that it is still too long.
    """
    begun: list[bytes] = []
    size = 0
    while data := _gathered(file):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*begun, memoryview(data)[:cut]])
            begun, size, data = [], 0, data[cut:]
        if size <= longest:
            begun.append(data)
            size += len(data)
    if size and not file.stopped:
        yield b"".join(begun)


def _gathered(file: Input) -> bytes:
    """Give what is at hand up to a block, and nothing at the end."""
    parts: list[bytes] = []
    size = 0
    while size < BLOCK and (data := file.read(BLOCK - size, wait=not parts)):
        parts.append(data)
        size += len(data)
    return b"".join(parts)


def size(name: str) -> int | None:
    """Bytes of a file as it lies there; None for standard input and pipes. Raises if there is none to read."""
    try:
        status = os.fstat(0) if name == "-" else Path(name).stat()
    except OSError as error:
        raise CliError(f"{name}: {error.strerror}") from None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
