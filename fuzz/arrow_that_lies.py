"""Arrow structures and NumPy arrays that contradict themselves, as keys and as times of every kind of call."""

import random
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
from children import run

import lately

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from test_safety_memory import HONEST, LIES, Foreign

FILTERS = [
    lately.AgePartitionedBloomFilter(100, 0.01),
    lately.TimingBloomFilter("1h", 0.01, capacity=100, max_ahead=None),
    lately.Swamp(100, 0.01),
]
# All but strings: a reader cannot check lengths that lie in their buffers.
FORMATS = b"n b c C s S i I l L e f g d:9,9 d:76,0,256 w:3 w:0 tdD tdm tts ttm ttu ttn tsn:UTC tss:".split()
FORMATS += b"tDs tDn tiM tiD tin +l +L +vl +vL +w:2 +s +m +ud:0 +us:0,1 +r".split()
IMPOSSIBLE = [-1, 2**58, 2**62, 2**63 - 1, -(2**63)]


def structure(chance: random.Random) -> Foreign:
    """Return a structure of which up to four fields are false, with arbitrary bytes in its buffers."""
    made = HONEST[chance.choice(sorted(HONEST))]()
    _, children, dictionary = made.kept
    parts = [made, *children, *([dictionary] if dictionary else [])]
    for part in parts:
        # Room for keys of any width, since no reader can detect that a buffer is short.
        for i, buffer in enumerate(part.kept[0]):
            if buffer is not None:
                room = np.zeros(8192, "u1")
                room[: buffer.nbytes] = buffer.view("u1")
                part.kept[0][i], part.array.buffers[i] = room, room.ctypes.data
    for _ in range(chance.randrange(5)):
        victim = chance.choice(parts)
        part, field, value = LIES[chance.choice(sorted(LIES))]
        # A number that is a little too large cannot be detected: memory has that much.
        if field in ("length", "offset"):
            value = chance.choice([*IMPOSSIBLE, 0, *([1, 19] if field == "length" else [])])
        if field == "format":
            value = chance.choice([value, *FORMATS])
        setattr(getattr(victim, part), field, value)
    return made


def numpy_array(chance: random.Random) -> object:
    """Return an array of any type, order and steps, or one whose stated shape is false."""
    kind = chance.choice(["i1", ">i4", "u8", ">f8", "f2", "S3", "U5", ">U2", "M8[s]", "m8[D]", "O", "?", "V7", "c16"])
    whole = np.zeros(chance.choice([0, 1, 7, 60]), "u1" if kind == "O" else kind)
    if kind == "O":
        whole = np.array([None, 1, "a", 2.5, b"x", object()][: len(whole)], object)
    elif whole.dtype.itemsize and len(whole) and kind != "?":
        whole.view("u1")[:] = np.frombuffer(chance.randbytes(whole.nbytes), "u1")
    array = whole[:: chance.choice([1, 2, -1, -3])]
    if chance.random() < 0.2:
        array = np.broadcast_to(array[:1], (len(array[:1]) and chance.choice([1, 5, 300]),))
    if chance.random() < 0.2:
        array = np.ma.masked_array(array, mask=np.ones(len(array), bool))

    class Itself(np.ndarray):
        """Answers what it likes."""

        def astype(self, *_, **__):
            return chance.choice([self, np.zeros(3), whole])

        def __getitem__(self, _):
            return chance.choice([np.zeros((2, 2)), self, whole[:1]])

    return array.view(Itself) if chance.random() < 0.2 and type(array) is np.ndarray else array


def case(chance: random.Random) -> None:
    """Hand it to a call: an error of Python's, or an answer for each key."""
    given = structure(chance) if chance.random() < 0.6 else numpy_array(chance)
    f = chance.choice(FILTERS)
    calls = [
        lambda: lately.hash_keys(given),
        lambda: f.insert(given, threads=chance.choice([1, 2])),
        lambda: f.query(given),
        lambda: f.duplicated(given, refresh=False),
        lambda: f.posterior(given, 0.1),
        lambda: f.posterior(np.arange(20), given),
        lambda: FILTERS[1].query(np.arange(20), at=given),
        lambda: FILTERS[1].insert(np.arange(20), at=given),
        lambda: lately.Hashes(given),
        lambda: f.age_probability(np.arange(3), 0.1, given),
    ]
    with suppress(TypeError, ValueError, MemoryError, OverflowError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chance.choice(calls)()


if __name__ == "__main__":
    run(case)
