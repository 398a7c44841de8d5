"""Filters side by side as a table: text for a terminal, HTML for a notebook, or a frame."""

import html
import math
from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any

# Columns of words are left-aligned, those of numbers right-aligned.
_WORDS = {"filter", "guarantees"}


class Table(ABC):
    """Table of filters in order, with the filter to take, the reason, and the families that cannot meet the request.

    Attributes
    ----------
    reason : str
        Why to take that filter.
    refused : dict of str to str
        For each family that cannot meet the request, the reason.
    """

    _columns: tuple[str, ...]
    reason: str
    refused: dict[str, str]

    @abstractmethod
    def _taken(self) -> str:
        """Return the name of the filter to take."""

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
        rows = [self._columns, *([text(cell) for cell in row] for row in self._shown())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(w) if column in _WORDS else cell.rjust(w)
                for column, cell, w in zip(self._columns, row, widths, strict=True)
            ).rstrip()
            for row in rows
        ]
        lines += [f"not {', '.join(names)}: {why}" for why, names in self._reasons().items()]
        return "\n".join([*lines, f"take: {self._taken()}, since {self.reason}"])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{column}</th>" for column in self._columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text(cell))}</td>" for cell in row) + "</tr>" for row in self._shown()
        )
        taken = html.escape(f"Take {self._taken()}, since {self.reason}.")
        not_taken = "".join(
            f"<li>{html.escape(', '.join(names))}: {html.escape(why)}</li>" for why, names in self._reasons().items()
        )
        refused = f"<p>These cannot:</p><ul>{not_taken}</ul>" if not_taken else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{taken}</p>{refused}"

    def _reasons(self) -> dict[str, list[str]]:
        """Group the refused families by reason."""
        reasons: dict[str, list[str]] = {}
        for name, why in self.refused.items():
            reasons.setdefault(why, []).append(name)
        return reasons


def assigned(parameters: dict[str, int]) -> str:
    """Format parameters for one cell."""
    return " ".join(f"{name}={value}" for name, value in parameters.items())


def text(cell: object) -> str:
    """Format a cell."""
    if cell == math.inf:
        return "no bound"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if cell >= 1000 else f"{cell:.3g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
