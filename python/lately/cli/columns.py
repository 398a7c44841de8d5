"""Whole blocks of plain records read at once, by pyarrow; a tenth of the time that records one by one take.

A block is given to pyarrow where both readers must agree on it: each line is one record, and pyarrow finds no fault.
Anything else, and all that is malformed, is left to the readers that take records one by one, which say what is wrong
where. So this says nothing of its own, and without pyarrow the answers are the same.
"""

import importlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately._core import read_moments
from lately.cli.errors import optional
from lately.cli.records import BOM, Asked, Batch, Lines
from lately.cli.times import Times

# A block longer than this holds lines that are worth no hurry.
_LONGEST = 1 << 22


@dataclass
class Columns:
    """The records of a block."""

    keys: Any
    """As a filter takes them: a column, or columns side by side."""
    times: NDArray[np.int64] | None
    lines: Lines

    def batch(self, name: str, first: int) -> Batch:
        """Give them as those of a file, from a line on."""
        return Batch(name, np.arange(first, first + len(self.lines)), self.keys, self.times, self.lines)


class CsvColumns:
    """Reads blocks of CSV without quotes that mean something."""

    def __init__(self, asked: Asked, *, delimiter: str, quotes: bool, header: list[str], comments: bool) -> None:
        self._asked = asked
        self._quotes = quotes
        self._comments = comments
        self._arrow = _arrow("pyarrow")
        self._csv = _arrow("pyarrow.csv")
        if self._arrow is None or self._csv is None or not delimiter.isascii():
            self._csv = None
            return
        # Fields go by their numbers, since names may come twice.
        names = [str(i) for i in range(len(header))]
        self._key = [names[header.index(field)] for field in asked.key] or names
        self._time = None if asked.time is None else names[header.index(asked.time.field)]
        wanted = dict.fromkeys((*self._key, *([self._time] if self._time else [])))
        self._names = names
        self._parse = self._csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False)
        self._convert = self._csv.ConvertOptions(
            include_columns=list(wanted), column_types=dict.fromkeys(wanted, self._arrow.string())
        )

    def read(self, block: bytes) -> Columns | None:
        """Read a block, or leave it."""
        if not block or self._csv is None or (self._quotes and b'"' in block):
            return None
        if self._comments and (block.startswith(b"#") or b"\n#" in block):
            return None
        lines = _lines(block, self._asked)
        if lines is None:
            return None
        reading = self._csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=self._names)
        try:
            table = self._csv.read_csv(
                self._arrow.BufferReader(block),
                read_options=reading,
                parse_options=self._parse,
                convert_options=self._convert,
            ).combine_chunks()
        except self._arrow.ArrowInvalid:
            return None
        if len(table) != len(lines):
            return None
        times = None
        if self._time is not None and self._asked.time is not None:
            times = _times(self._asked.time, table.column(self._time), self._arrow)
            if times is None:
                return None
        return Columns(_side_by_side(table, self._key), times, lines)


class JsonColumns:
    """Reads blocks of JSON lines whose fields have the types of the first."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._arrow = _arrow("pyarrow")
        self._json = _arrow("pyarrow.json")
        self._fields = list(dict.fromkeys((*asked.key, *([asked.time.field] if asked.time else []))))
        if not asked.key or any("." in field for field in self._fields):
            self._json = None

    def read(self, block: bytes) -> Columns | None:
        """Read a block, or leave it."""
        lines = None if self._json is None else _lines(block, self._asked)
        if not lines or not self._enclosed(block, lines):
            return None
        schema = self._schema(lines[0])
        if schema is None or self._json is None:
            return None
        parsing = self._json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        reading = self._json.ReadOptions(use_threads=False, block_size=len(block) + 1)
        try:
            table = self._json.read_json(
                self._arrow.BufferReader(block), read_options=reading, parse_options=parsing
            ).combine_chunks()
        except self._arrow.ArrowInvalid:
            return None
        if len(table) != len(lines):
            return None
        # Where a record may lack all of its key, or a field is never there, null has to be told from absent.
        missing = [table.column(field).null_count for field in self._asked.key]
        if 0 not in missing or len(lines) in missing:
            return None
        times = None
        if self._asked.time is not None:
            times = _times(self._asked.time, table.column(self._asked.time.field), self._arrow)
            if times is None:
                return None
        return Columns(_side_by_side(table, self._asked.key), times, lines)

    def _enclosed(self, block: bytes, lines: Lines) -> bool:
        """Whether each line begins and ends as an object does.

        Then no object spans lines: between the end of a line and the next there would have to be a comma, or one of the
        lines would begin or end otherwise. Where pyarrow finds as many objects as lines, each line is one.
        """
        between = block.count(b"}\n{") + (block.count(b"}\r\n{") if b"\r" in block else 0)
        return block.startswith(b"{") and block.rstrip(b"\r\n").endswith(b"}") and between == len(lines) - 1

    def _schema(self, line: bytes) -> Any:
        try:
            record = json.loads(line)
        except ValueError:
            return None
        arrow = self._arrow
        types = {str: arrow.string(), int: arrow.int64()}
        found = [(field, types.get(type(record.get(field)))) for field in self._fields]
        return None if any(type is None for _, type in found) else arrow.schema(found)


def bools(values: NDArray[np.bool_]) -> Any:
    """Make an Arrow array; ``pyarrow.array`` would import pandas, to see whether that is what it is given."""
    arrow = optional("pyarrow", "Parquet")
    bits = np.packbits(values, bitorder="little")
    return arrow.Array.from_buffers(arrow.bool_(), len(values), [None, arrow.py_buffer(bits)])


def _arrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def _lines(block: bytes, asked: Asked) -> Lines | None:
    """Find the lines of a block; nothing where one may be malformed as text, or is too long to be worth it."""
    if len(block) > min(_LONGEST, asked.longest) or block.startswith(BOM.encode()):
        return None
    if block.startswith((b"\n", b"\r")) or b"\n\n" in block or b"\n\r" in block:  # a blank line
        return None
    if not block.isascii():
        if asked.encoding != "utf-8":
            return None
        try:
            block.decode()
        except UnicodeDecodeError:
            return None
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + 1
    last = [] if block.endswith(b"\n") else [len(block)]
    return Lines(block, np.concatenate([[0], ends, last]).astype(np.int64))


def _times(times: Times, column: Any, arrow: Any) -> NDArray[np.int64] | None:
    """Read times as `Times.read` does each, or nothing if one cannot be read."""
    try:
        if times.plain and not column.null_count:
            numbers = column if arrow.types.is_integer(column.type) else column.cast(arrow.float64())
            return np.asarray(read_moments(np.concatenate([_numbers(chunk) for chunk in numbers.chunks])))
    except (arrow.ArrowInvalid, ValueError):
        pass
    try:
        return np.array([times.read(value) for value in column.to_pylist()], np.int64)
    except ValueError:
        return None


def _numbers(array: Any) -> NDArray[np.float64 | np.int64]:
    """Give a view of numbers of 64 bits without nulls; that of pyarrow would import pandas."""
    return np.frombuffer(array.buffers()[1], array.type.to_pandas_dtype(), len(array), 8 * array.offset)


def _side_by_side(table: Any, fields: list[str]) -> Any:
    return table.column(fields[0]) if len(fields) == 1 else table.select(fields)
