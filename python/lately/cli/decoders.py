"""What is compressed, a frame at a time. `inputs` imports this when a file begins as it does."""

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
    """One compressed frame: what lzma and bz2 have."""

    @property
    def needs_input(self) -> bool:
        """Whether it gives nothing more of what it was given."""

    @property
    def eof(self) -> bool:
        """Whether it has ended."""

    @property
    def unused_data(self) -> bytes:
        """What was given beyond its end."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Take compressed bytes, and give at most so many plain ones."""


# Compressed bytes decoded at a time by zstd, which cannot be told how much to give: a block of 128 KiB comes from as
# few as four bytes, so 16 MiB from these, held twice as they are joined.
_ZSTD_CHUNK = 1 << 9


class _Frame:
    """A frame of a library, whose own error is told as `DamagedError`."""

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
"""By the names of `inputs`; each is made for a file of that name, which messages show."""
