"""Filters side by side as a table: text for a terminal, HTML for a notebook, or a frame."""

import html
import math
import textwrap
from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any

# Columns of words are left-aligned, those of numbers right-aligned.
_WORDS = {"filter", "guarantees"}

# Columns in the order in which short lines leave them out.
_LEAST_NEEDED = ("parameters", "guarantees", "NPWS", "hit", "insert", "miss", "bits per key")


class Table(ABC):
    """Table of filters in order, with the filter to take, the reason, and the families that cannot meet the request.

    Attributes
    ----------
    best : Choice or Trial
        The filter to take.
    reason : str
        Why to take it.
    refused : dict of str to str
        For each family that cannot meet the request, the reason.
    """

    _columns: tuple[str, ...]
    best: Any
    reason: str
    refused: dict[str, str]

    @abstractmethod
    def _shown(self) -> list[list[Any]]:
        """Return the rows for a reader."""

    def _all(self) -> list[list[Any]]:
        """Return the rows for a program."""
        return self._shown()

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame."""
        return import_module("pandas").DataFrame([dict(zip(self._columns, row, strict=True)) for row in self._all()])

    def __repr__(self) -> str:
        return self.to_text()

    def to_text(self, width: int | None = None) -> str:
        """Return the table as text, for a terminal of a given width.

        Parameters
        ----------
        width : int, optional
            Characters of a line. Columns that do not fit are left out, and text is wrapped. The default is no limit.
        """
        rows = [self._columns, *([text(cell) for cell in row] for row in self._shown())]
        columns = dict(zip(self._columns, zip(*rows, strict=True), strict=True))
        widths = {name: max(map(len, column)) for name, column in columns.items()}
        absent = []
        for name in _LEAST_NEEDED:
            if width is not None and name in widths and sum(widths.values()) + 2 * len(widths) - 2 > width:
                absent.append(name)
                del widths[name]
        lines = [
            "  ".join(
                columns[name][i].ljust(w) if name in _WORDS else columns[name][i].rjust(w) for name, w in widths.items()
            ).rstrip()
            for i in range(len(rows))
        ]
        notes = [f"not {refusal}" for refusal in refusals(self.refused)]
        notes.append(f"take: {self.best.name}, since {self.reason}")
        if absent:
            notes.insert(0, f"not shown, for want of room: {', '.join(absent)}")
        if width is not None:
            notes = [textwrap.fill(note, width, subsequent_indent="  ", break_on_hyphens=False) for note in notes]
        return "\n".join([*lines, *notes])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{column}</th>" for column in self._columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text(cell))}</td>" for cell in row) + "</tr>" for row in self._shown()
        )
        taken = html.escape(f"Take {self.best.name}, since {self.reason}.")
        not_taken = "".join(f"<li>{html.escape(refusal)}</li>" for refusal in refusals(self.refused))
        refused = f"<p>These cannot:</p><ul>{not_taken}</ul>" if not_taken else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{taken}</p>{refused}"


def refusals(refused: dict[str, str]) -> list[str]:
    """Return a line for each reason, with the families that it holds for."""
    reasons: dict[str, list[str]] = {}
    for name, why in refused.items():
        reasons.setdefault(why, []).append(name)
    return [f"{', '.join(names)}: {why}" for why, names in reasons.items()]


def assigned(parameters: dict[str, int]) -> str:
    """Format the parameters of a filter for one cell of a table."""
    return " ".join(f"{name}={value}" for name, value in parameters.items())


def text(cell: object) -> str:
    """Format the value of a cell of a table."""
    if cell == math.inf:
        return "no bound"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if cell >= 1000 else f"{cell:.3g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
