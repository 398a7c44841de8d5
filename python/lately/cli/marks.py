"""Records with a field before all others that says whether they are repeats."""

from collections.abc import Callable

from lately.cli.parquet import FIELD, bools
from lately.cli.records import BOM, Batch, Marks, others

_BOM = BOM.encode()

Mark = Callable[[Batch, Marks], Batch]
"""Marks a batch, told which of its records are new."""


def marker(format: str, delimiter: str) -> Mark:
    """Give what marks records of a format: text as if it were separated by tabs."""
    if format == "parquet":
        return _rows
    if format == "jsonl":
        return lambda batch, new: batch.but(records=list(map(_object, batch.records, others(new))))
    separator = (delimiter or "\t").encode()

    def lines(batch: Batch, new: Marks) -> Batch:
        head = batch.head
        if head:
            bom = _BOM if head.startswith(_BOM) else b""
            head = bom + FIELD.encode() + separator + head.removeprefix(bom)
        records = [b"%d%b%b" % (value, separator, line) for value, line in zip(others(new), batch.records, strict=True)]
        return batch.but(records=records, head=head)

    return lines


def _object(line: bytes, repeat: int) -> bytes:
    before, _, rest = line.partition(b"{")
    comma = b"" if rest.lstrip().startswith(b"}") else b", "
    return b'%b{"%b": %b%b%b' % (before, FIELD.encode(), b"true" if repeat else b"false", comma, rest)


def _rows(batch: Batch, new: Marks) -> Batch:
    return batch.but(records=batch.records.add_column(0, FIELD, bools(others(new))))
