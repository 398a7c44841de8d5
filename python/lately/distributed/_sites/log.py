"""The saved form of a site: its checkpoint, and the replay log of what it wrote since, appended before it answers.

A log is a row of *groups*, each written and synced at once: a head, and frames (`frames.py`), one for each record:
``[method, columns, options, request, heard, answers]``. They hold what was new to the site, so that the same calls in
the same order give the same cells. A head is `MAGIC`, the number of bytes after it, their BLAKE2b sum of 16 bytes, and
that of the head itself, so that a length that is damaged is not taken for a group that was cut off. A checkpoint is a
group of one record, which is a list of a mapping.
"""

import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

from lately.distributed._sites.frames import LENGTHS, framed, opened
from lately.distributed._sites.results import State

MAGIC = b"lately 1"
_HEAD = struct.Struct("<8sQ16s")
_WHOLE = _HEAD.size + 16


def record(*values: Any) -> bytes:
    """Make a record."""
    return b"".join(framed(values))


def group(records: Sequence[bytes]) -> bytes:
    """Make a group of records."""
    data = b"".join(records)
    head = _HEAD.pack(MAGIC, len(data), _sum(data))
    return head + _sum(head) + data


def pack(state: State) -> bytes:
    """Make a checkpoint."""
    return group([record(state)])


def unpack(data: bytes) -> State:
    """Read a checkpoint; nothing in it is ever executed. One that is damaged is a ValueError."""
    if not data.startswith(MAGIC):
        raise ValueError(f"this is no checkpoint of a site: it begins with {data[:16]!r}")
    match list(records(data)):
        case [[dict(state)]] if len(data) == _WHOLE + _HEAD.unpack_from(data)[1]:
            return state
    raise ValueError("the checkpoint is damaged: it is cut off, or more comes after it")


def records(log: bytes) -> Iterator[Any]:
    """Read the records of a log. A group that was cut off while it was written ends it: it was not answered.

    Any other damage is a ValueError.
    """
    start = 0
    while start < len(log):
        head = log[start : start + _HEAD.size]
        magic, length, checked = _HEAD.unpack(head) if len(head) == _HEAD.size else (b"", 0, b"")
        good = magic == MAGIC and _sum(head) == log[start + _HEAD.size : start + _WHOLE]
        data = memoryview(log)[start + _WHOLE : start + _WHOLE + length] if good else memoryview(b"")
        if not good or _sum(data) != checked:
            # Of what is cut off a file system may have the length already, and zeros in its place.
            torn = start + _WHOLE + length >= len(log) if good else len(log[start:].rstrip(b"\0")) < _WHOLE
            if torn:
                return
            raise ValueError("the log is damaged: there is more behind what cannot be read")
        start += _WHOLE + length
        at = 0
        while at < length:
            if length - at < LENGTHS.size:
                raise ValueError("the log is damaged: a record is cut off within its group")
            head_length, arrays = LENGTHS.unpack_from(data, at)
            at += LENGTHS.size
            yield opened(bytes(data[at : at + head_length]), data[at + head_length : at + head_length + arrays])
            at += head_length + arrays


def _sum(data: bytes | memoryview) -> bytes:
    return blake2b(data, digest_size=16).digest()
