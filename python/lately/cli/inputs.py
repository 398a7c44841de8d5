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

# First bytes of files that are read. Text may begin with BZh: in a bzip2 file a digit follows, and digits of pi, or of
# its root where the file is empty. Files of zstd may begin with a frame to skip.
_CODECS = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{bytes([0x50 + i]) + b"\x2a\x4d\x18": "zstd" for i in range(16)},
    b"\xfd7zXZ\0": "xz",
    b"\x5d\0\0": "xz",  # .lzma
    **{b"BZh%d" % level + digits: "bzip2" for level in range(1, 10) for digits in (b"1AY&SY", b"\x17rE8P\x90")},
}
# First bytes of files that are not text and not read: what they are, and the command that gives their text.
_REFUSED = {
    **{b"PK" + mark: ("zip, as .xlsx is too", "unzip -p FILE") for mark in (b"\3\4", b"\5\6", b"\7\x08")},
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -dc FILE"),
    b"\x1f\x9d": ("of compress, .Z", "gzip -dc FILE"),
    b"7z\xbc\xaf\x27\x1c": ("7z", "7z x -so FILE"),
    b"Rar!\x1a\7": ("rar", "unrar p -inul FILE"),
    b"LZIP\1": ("lzip", "lzip -dc FILE"),
    b"\xff\6\0\0sNaPpY": ("snappy", "snzip -dc FILE"),
    b"\xff\xfe": ("UTF-16", "iconv -f UTF-16 -t UTF-8 FILE"),
    b"\xfe\xff": ("UTF-16", "iconv -f UTF-16 -t UTF-8 FILE"),
    b"PAR1\x15": ("Parquet, which needs --format parquet", ""),
    b"ARROW1\0\0": ("Arrow or Feather", ""),
    b"FEA1\0\0\0\0": ("Feather", ""),
    b"Obj\1": ("Avro", ""),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an old Office file", ""),
    b"SQLite format 3\0": ("SQLite", ""),
}


class Input:
    """A file, or standard input for ``-``. It is decompressed if it begins as gzip, zstd, xz, lzma or bzip2 does.

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
        while any(magic.startswith(self._rest) and magic != self._rest for magic in (*_CODECS, *_REFUSED)):
            if not (more := self._read(8)):
                break
            self._rest += more
        self._codec = next((codec for magic, codec in _CODECS.items() if self._rest.startswith(magic)), None)
        kind, command = next((kind for magic, kind in _REFUSED.items() if self._rest.startswith(magic)), ("", ""))
        if name.endswith(".br"):  # has no first bytes of its own
            kind, command = "brotli", "brotli -dc FILE"
        if kind:
            self.close()
            advice = f": {command.replace('FILE', name)} | lately dedupe" if command else ""
            raise DamagedError(f"it is {kind}, and not text{advice}")
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
                if "requires too much memory" in str(error):  # as after zstd --long=28
                    problem = "its window is longer than 128 MiB"
                    raise DamagedError(f"{problem}: zstd -dc --long=31 {self._name} | lately dedupe") from None
                raise DamagedError(f"damaged compressed data: {error}") from None
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data, None
            elif hungry and not data and not plain:
                raise DamagedError("damaged compressed data: it is incomplete")
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
