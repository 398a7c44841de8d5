"""Frames: arrays, and JSON that describes them, as bytes; on the wire and in logs.

A frame is two little-endian 64-bit lengths, then that many bytes of JSON, then that many bytes of arrays. In the JSON
an array is ``{"dtype": "<i4", "shape": [n]}``; the bytes of all arrays follow in the order in which they are named,
each filled up to a multiple of 8. Types are those of numbers and bools. Nothing that is read is executed or unpickled.
"""

import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

LENGTHS = struct.Struct("<QQ")

Buffer = bytes | memoryview


def framed(value: Any) -> list[Buffer]:
    """Make the frame of lists, mappings, text, numbers, and arrays in them."""
    arrays: list[Buffer] = []

    def named(array: Any) -> Any:
        if isinstance(array, np.generic):
            return array.item()
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            raise TypeError(f"{type(array).__name__} does not cross the wire")
        arrays.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        arrays.append(bytes(-array.nbytes % 8))
        return {"dtype": array.dtype.newbyteorder("<").str, "shape": array.shape}

    head = json.dumps(value, default=named).encode()
    head += b" " * (-len(head) % 8)
    return [LENGTHS.pack(len(head), sum(map(len, arrays))), head, *arrays]


def opened(head: bytes | bytearray, arrays: bytes | bytearray | memoryview) -> Any:
    """Make again what `framed` was given; tuples are lists. What is no frame is a ValueError."""
    taken = 0

    def made(found: dict[str, Any]) -> Any:
        nonlocal taken
        if found.keys() != {"dtype", "shape"}:
            return found
        dtype, shape = np.dtype(found["dtype"]), found["shape"]
        if dtype.kind not in "biuf":
            raise ValueError(f"arrays of {dtype} do not cross the wire")
        array: NDArray[Any] = np.frombuffer(arrays, dtype, int(np.prod(shape)), taken).reshape(shape)
        taken += -(-array.nbytes // 8) * 8
        return array

    try:
        return json.loads(head, object_hook=made)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"this is no frame: {error}") from None
