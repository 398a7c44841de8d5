"""Ways from a filter to another with its contents: each takes the filter and a path to write to."""

import copy
import io
import pickle

import numpy as np

import lately

ROUND_TRIPS = {
    "bytes": lambda f, path: lately.from_bytes(f.to_bytes()),
    "bytearray": lambda f, path: lately.from_bytes(bytearray(f.to_bytes())),
    "memoryview off a word boundary": lambda f, path: lately.from_bytes(memoryview(b"abc" + f.to_bytes())[3:]),
    "strided memoryview": lambda f, path: lately.from_bytes(np.repeat(np.frombuffer(f.to_bytes(), np.uint8), 2)[::2]),
    "file": lambda f, path: (f.save(path), lately.open(path))[1],
    "mapped file": lambda f, path: (f.save(path), lately.open(path, mmap=True))[1],
    "binary file": lambda f, path: (f.save(file := io.BytesIO()), file.seek(0), lately.open(file))[2],
    "text path": lambda f, path: (f.save(str(path)), lately.open(str(path)))[1],
    **{f"pickle {n}": lambda f, path, n=n: pickle.loads(pickle.dumps(f, protocol=n)) for n in range(6)},
    "pickle out of band": lambda f, path: out_of_band(f)[0],
    "copy()": lambda f, path: f.copy(),
    "copy.copy": lambda f, path: copy.copy(f),
    "copy.deepcopy": lambda f, path: copy.deepcopy(f),
}


def out_of_band(f):
    buffers = []
    band = pickle.dumps(f, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(band, buffers=buffers), band, buffers
