"""Decoders of compressed input, one frame at a time. `inputs` imports them for a file that is compressed."""

from __future__ import annotations

import lzma
import zlib
from bz2 import BZ2Decompressor
from typing import Protocol

from lately.cli.errors import DamagedError, optional

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Decoder(Protocol):
    """Decoder of a compressed frame, with the interface of lzma and bz2."""

    @property
    def needs_input(self) -> bool:
        """Whether the decoder needs more compressed bytes to return plain ones."""

    @property
    def eof(self) -> bool:
        """Whether the frame has ended."""

    @property
    def unused_data(self) -> bytes:
        """The bytes after the end of the frame."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Decode compressed bytes; return at most `max_length` plain ones."""


# Compressed bytes that zstd decodes at a time; it has no limit for the result. Four bytes may give a block of 128 KiB,
# so these give up to 16 MiB, twice while they are joined.
_ZSTD_CHUNK = 1 << 9


class _Frame:
    """Decoder of a library. It raises `DamagedError` for the library's own error."""

    def __init__(self, frame: Any, error: type[Exception]) -> None:
        self._frame = frame
        self._error = error

    @property
    def needs_input(self) -> bool:
        return bool(self._frame.needs_input)

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data)

    def decompress(self, data: bytes, most: int, /) -> bytes:
        try:
            return self._decode(data, most)
        except self._error as error:
            raise DamagedError(str(error)) from None

    def _decode(self, data: bytes, most: int) -> bytes:
        plain: bytes = self._frame.decompress(data, most)
        return plain


class _Gzip(_Frame):
    def __init__(self) -> None:
        super().__init__(zlib.decompressobj(31), zlib.error)

    @property
    def needs_input(self) -> bool:
        return not self._frame.unconsumed_tail

    def _decode(self, data: bytes, most: int) -> bytes:
        return super()._decode(self._frame.unconsumed_tail + data, most)


class _Zstd(_Frame):
    def __init__(self, name: str) -> None:
        zstandard = optional("zstandard", f"{name}: zstd")
        super().__init__(zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError)
        self._compressed = b""
        self._plain = memoryview(b"")

    @property
    def needs_input(self) -> bool:
        return not self._plain and not self._compressed

    @property
    def eof(self) -> bool:
        return not self._plain and super().eof

    @property
    def unused_data(self) -> bytes:
        return super().unused_data + self._compressed

    def _decode(self, data: bytes, most: int) -> bytes:
        self._compressed += data
        while self._compressed and not self._plain and not self._frame.eof:
            chunk, self._compressed = self._compressed[:_ZSTD_CHUNK], self._compressed[_ZSTD_CHUNK:]
            self._plain = memoryview(self._frame.decompress(chunk))
        part, self._plain = bytes(self._plain[:most]), self._plain[most:]
        return part


DECODERS: dict[str, Callable[[str], Decoder]] = {
    "gzip": lambda _name: _Gzip(),
    "zstd": _Zstd,
    "xz": lambda _name: _Frame(lzma.LZMADecompressor(lzma.FORMAT_XZ), lzma.LZMAError),
    "bzip2": lambda _name: BZ2Decompressor(),
}
"""Decoders by the names in `inputs`. Each takes the name of the file for its messages."""
