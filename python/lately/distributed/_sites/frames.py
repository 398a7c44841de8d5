"""Frames: arrays and the JSON that describes them, as the bytes of logs and checkpoints.

A frame is two little-endian 64-bit lengths, then that many bytes of JSON, then that many bytes of arrays. In the JSON
an array is ``{"dtype": "<i4", "shape": [n]}``; the bytes of all arrays follow in the order in which they are named,
each padded to a multiple of 8. Arrays are of numbers or bools. Nothing that is read is executed or unpickled.
"""

import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

LENGTHS = struct.Struct("<QQ")

Buffer = bytes | memoryview


def encode_frame(value: Any) -> list[Buffer]:
    """Encode lists, mappings, text, numbers, and arrays in them, as a frame."""
    arrays: list[Buffer] = []

    def named(array: Any) -> Any:
        if isinstance(array, np.generic):
            return array.item()
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            raise TypeError(f"{type(array).__name__} cannot be saved")
        arrays.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        arrays.append(bytes(-array.nbytes % 8))
        return {"dtype": array.dtype.newbyteorder("<").str, "shape": array.shape}

    head = json.dumps(value, default=named).encode()
    head += b" " * (-len(head) % 8)
    return [LENGTHS.pack(len(head), sum(map(len, arrays))), head, *arrays]


def decode_frame(head: bytes | bytearray, arrays: bytes | bytearray | memoryview) -> Any:
    """Decode a frame into what `encode_frame` encoded, with lists for tuples; raise `ValueError` for other bytes."""
    taken = 0

    def made(found: dict[str, Any]) -> Any:
        nonlocal taken
        if found.keys() != {"dtype", "shape"}:
            return found
        dtype, shape = np.dtype(found["dtype"]), found["shape"]
        if dtype.kind not in "biuf":
            raise ValueError(f"a frame has no arrays of {dtype}")
        array: NDArray[Any] = np.frombuffer(arrays, dtype, int(np.prod(shape)), taken).reshape(shape)
        taken += -(-array.nbytes // 8) * 8
        return array

    try:
        return json.loads(head, object_hook=made)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"this is no frame: {error}") from None
