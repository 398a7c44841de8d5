"""Decoders of compressed input, one frame at a time. `inputs` imports them for a file that is compressed."""

import lzma
import zlib
from bz2 import BZ2Decompressor
from lzma import LZMADecompressor
from typing import Any

from lately.cli.errors import optional


class Chunked:
    """Decoder of zlib or zstandard with the interface of lzma and bz2, and a limit for the result, as theirs.

    The library's decoder has no limit, so it gets few compressed bytes at a time.
    """

    def __init__(self, frame: Any, chunk: int) -> None:
        self._frame = frame
        self._chunk = chunk
        self._compressed = self._plain = memoryview(b"")

    @property
    def needs_input(self) -> bool:
        """Whether the decoder needs more compressed bytes to return plain ones."""
        return not self._plain and not self._compressed

    @property
    def eof(self) -> bool:
        """Whether the frame has ended."""
        return not self._plain and bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes:
        """The bytes after the end of the frame."""
        return bytes(self._frame.unused_data) + self._compressed

    def decompress(self, data: bytes, most: int) -> bytes:
        """Decode compressed bytes; return at most `most` plain ones."""
        if data:
            self._compressed = memoryview(self._compressed.tobytes() + data)
        while self._compressed and not self._plain and not self._frame.eof:
            self._plain = memoryview(self._frame.decompress(self._compressed[: self._chunk]))
            self._compressed = self._compressed[self._chunk :]
        part, self._plain = bytes(self._plain[:most]), self._plain[most:]
        return part


Decoder = Chunked | LZMADecompressor | BZ2Decompressor


def decoder(codec: str, name: str) -> tuple[Decoder, type[Exception]]:
    """Return the decoder of a codec, and its error for damaged data. `name` is the file's, for messages."""
    if codec == "gzip":
        return Chunked(zlib.decompressobj(31), 1 << 14), zlib.error
    if codec == "zstd":
        zstandard = optional("zstandard", f"{name}: zstd")
        # Four bytes may give a block of 128 KiB, so these give up to 16 MiB, twice while they are joined.
        return Chunked(zstandard.ZstdDecompressor().decompressobj(), 1 << 9), zstandard.ZstdError
    if codec == "xz":
        return LZMADecompressor(lzma.FORMAT_AUTO), lzma.LZMAError
    return BZ2Decompressor(), OSError
