"""Records with an additional first field, `repeat`: whether each is a repeat."""

import csv
import json
from collections.abc import Callable

from lately.cli.errors import CliError
from lately.cli.parquet import FIELD, bools
from lately.cli.records import BOM, Batch, Marks, others

_BOM = BOM.encode()
_NAME = f'"{FIELD}"'.encode()

Annotate = Callable[[Batch, Marks], Batch]
"""Adds the field to the records of a batch. The marks state which of them are new."""


def annotator(format: str, delimiter: str) -> Annotate:
    """Return the function that adds the field to records of a format. In text a tab follows the field."""
    if format == "parquet":
        return _annotated_rows
    if format == "jsonl":
        return _annotated_objects
    separator = (delimiter or "\t").encode()

    def lines(batch: Batch, new: Marks) -> Batch:
        head = batch.head
        if head:
            bom = _BOM if head.startswith(_BOM) else b""
            head = head.removeprefix(bom)
            fields = next(csv.reader([head.decode(errors="replace")], delimiter=delimiter))
            _check_free(FIELD in fields, batch.source)
            head = bom + FIELD.encode() + separator + head
        records = [b"%d%b%b" % (value, separator, line) for value, line in zip(others(new), batch.records, strict=True)]
        if batch.numbers and batch.numbers[0] == 1 and batch.records[0].startswith(_BOM):
            records[0] = _BOM + records[0].replace(_BOM, b"", 1)
        return batch._replace(records=records, head=head)

    return lines


def _check_free(taken: bool, name: str) -> None:
    """Raise `CliError` if records have the field already, as after another run with ``--mark``."""
    if taken:
        raise CliError(f"{name}: --mark adds the field {FIELD!r}, which its records have already: rename that field")


def _annotated_objects(batch: Batch, new: Marks) -> Batch:
    for line in batch.records:
        _check_free(_NAME in line and FIELD in json.loads(line), batch.source)
    return batch._replace(records=list(map(_annotated_object, batch.records, others(new))))


def _annotated_object(line: bytes, repeat: int) -> bytes:
    before, _, rest = line.partition(b"{")
    comma = b"" if rest.lstrip().startswith(b"}") else b", "
    return b'%b{"%b": %b%b%b' % (before, FIELD.encode(), b"true" if repeat else b"false", comma, rest)


def _annotated_rows(batch: Batch, new: Marks) -> Batch:
    _check_free(FIELD in batch.records.schema.names, batch.source)
    return batch._replace(records=batch.records.add_column(0, FIELD, bools(others(new))))
