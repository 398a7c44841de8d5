"""The hashes of scheme 1, fixed: a release that hashes differently cannot use a saved filter.

If one of these changes, the scheme needs a new number. `python tests/test_keys_golden.py` prints the file anew.
"""

import datetime as dt
import decimal
import json
import uuid
from pathlib import Path

import numpy as np
import pytest

import lately

FILE = Path(__file__).parent / "golden" / "keys.json"
SEEDS = (0, 1)
BERLIN_SUMMER = dt.timezone(dt.timedelta(hours=2))

KEYS = {
    "missing": None,
    "0": 0,
    "5": 5,
    "-1": -1,
    "2**63 - 1": 2**63 - 1,
    "-2**63": -(2**63),
    "2**63": 2**63,
    "2**64 - 1": 2**64 - 1,
    "2**64": 2**64,
    "-2**63 - 1": -(2**63) - 1,
    "10**40": 10**40,
    "0.5": 0.5,
    "-1e-300": -1e-300,
    "infinity": float("inf"),
    "-infinity": -float("inf"),
    "1e300": 1e300,
    "text, empty": "",
    "text 5": "5",
    "text of 2 bytes": "ab",
    "text of 12 bytes": "twelve bytes",
    "text of 16 bytes": "sixteen bytes is",
    "text of 40 bytes": "https://example.com/0123456789abcdefghij",
    "text of 200 bytes": "ten bytes." * 20,
    "text of 1000 bytes": "ten bytes." * 100,
    "text, not ASCII": "naïve 東京 😀",
    "text, lone surrogate": "\ud83d",
    "bytes, empty": b"",
    "bytes 5": b"5",
    "bytes 0..255": bytes(range(256)),
    "date": dt.date(2026, 11, 21),
    "datetime": dt.datetime(2026, 11, 21, 6, 12, 30, 250_000),
    "datetime before 1970": dt.datetime(1, 1, 1, 0, 0, 0, 1),
    "datetime of nanoseconds": np.datetime64("2026-11-21T06:12:30.123456789"),
    "datetime of years": np.datetime64(10**12, "Y"),
    "datetime with zone": dt.datetime(2026, 7, 21, 6, 12, 30, tzinfo=BERLIN_SUMMER),
    "timedelta": dt.timedelta(days=-1, microseconds=5),
    "timedelta of attoseconds": np.timedelta64(-1, "as"),
    "timedelta of months": np.timedelta64(14, "M"),
    "row, empty": (),
    "row": (5, "5", b"5", None, 0.5),
    "row in a row": ((1, 2), 3),
    "decimal of tenths": decimal.Decimal("0.1"),
    "UUID": uuid.UUID("12345678-1234-5678-1234-567812345678"),
    "time of day": dt.time(6, 12, 30, 250_000),
    "list, empty": [],
    "list": [5, "5", None],
    "member": uuid.SafeUUID.safe,
}


def hashes():
    """All of `KEYS`, each with its hash under every seed."""
    columns = [[f"{lately.hash_keys([key], seed=seed)[0]:016x}" for key in KEYS.values()] for seed in SEEDS]
    return dict(zip(KEYS, zip(*columns, strict=True), strict=True))


@pytest.fixture(scope="module")
def golden():
    return json.loads(FILE.read_text(encoding="utf-8"))


def test_hashes_are_those_recorded(golden):
    assert golden["scheme"] == 1
    assert golden["seeds"] == list(SEEDS)
    assert {name: tuple(row) for name, row in golden["hashes"].items()} == hashes()


if __name__ == "__main__":
    print(json.dumps({"scheme": 1, "seeds": SEEDS, "hashes": hashes()}, indent=1))
