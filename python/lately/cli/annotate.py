"""Records with an additional first field, `repeat`: whether each is a repeat."""

from collections.abc import Callable

from lately.cli.parquet import FIELD, bools
from lately.cli.records import BOM, Batch, Marks, others

_BOM = BOM.encode()

Annotate = Callable[[Batch, Marks], Batch]
"""Adds the field to the records of a batch. The marks state which of them are new."""


def annotator(format: str, delimiter: str) -> Annotate:
    """Return the function that adds the field to records of a format. In text a tab follows the field."""
    if format == "parquet":
        return _annotated_rows
    if format == "jsonl":
        return lambda batch, new: batch._replace(records=list(map(_annotated_object, batch.records, others(new))))
    separator = (delimiter or "\t").encode()

    def lines(batch: Batch, new: Marks) -> Batch:
        head = batch.head
        if head:
            bom = _BOM if head.startswith(_BOM) else b""
            head = bom + FIELD.encode() + separator + head.removeprefix(bom)
        records = [b"%d%b%b" % (value, separator, line) for value, line in zip(others(new), batch.records, strict=True)]
        return batch._replace(records=records, head=head)

    return lines


def _annotated_object(line: bytes, repeat: int) -> bytes:
    before, _, rest = line.partition(b"{")
    comma = b"" if rest.lstrip().startswith(b"}") else b", "
    return b'%b{"%b": %b%b%b' % (before, FIELD.encode(), b"true" if repeat else b"false", comma, rest)


def _annotated_rows(batch: Batch, new: Marks) -> Batch:
    return batch._replace(records=batch.records.add_column(0, FIELD, bools(others(new))))
