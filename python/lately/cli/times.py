"""Times in records."""

import re
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation

from lately._core import read_moment

_PLACES = {"s": 9, "ms": 6, "us": 3, "ns": 0}
# The digits of a time of this year in Unix milliseconds, microseconds and nanoseconds.
_UNITS = {13: "ms", 16: "us", 19: "ns"}


class Times:
    """Reads a field as a time: a number of Unix seconds or of another unit, ISO 8601, or text in a given format.

    Times without a zone are in UTC.

    Attributes
    ----------
    field : str
        Name of the field.
    places : int or None
        How many decimal places a number has before it counts nanoseconds; None if all times are text of a format.
    """

    def __init__(self, field: str, unit: str = "s", format: str | None = None) -> None:
        import numpy  # noqa: F401  # the core makes arrays of times: an ImportError comes before any output

        self.field = field
        self.places = _PLACES[unit] if format is None else None
        self._format = format

    def read(self, value: object) -> int:
        """Return nanoseconds since the Unix epoch; an error names the field."""
        text = str(value).strip()
        try:
            if self.places is None:
                return read_moment(value if value is None else datetime.strptime(text, str(self._format)))
            if isinstance(value, str | float | int | Decimal) and not isinstance(value, bool):
                return read_moment(self._parsed(text))
            return read_moment(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"the time {self.field} {error}{self._hint(text)}") from None

    def _parsed(self, text: str) -> Decimal | datetime:
        """Read a number as seconds, or ISO 8601."""
        try:
            return Decimal(text).scaleb((self.places or 0) - 9)
        except InvalidOperation:
            pass
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass
        # Python reads neither a leap second nor the end of a day.
        if late := re.fullmatch(r"(.{10}[T ])(?:24:00(?::00(?:[.,]0+)?)?|(\d\d:\d\d):60)(.*)", text):
            day, minute, zone = late.groups()
            ends = timedelta(seconds=1) if minute else timedelta(days=1)
            return datetime.fromisoformat(f"{day}{minute}:59{zone}" if minute else f"{day}00:00{zone}") + ends
        raise ValueError(f"{text!r} is neither a number of Unix seconds nor ISO 8601")

    def _hint(self, text: str) -> str:
        """Return the option that may read a time."""
        number = re.fullmatch(r"\d+(\.\d*)?", text)
        if number and self.places == 9 and (unit := _UNITS.get(len(text.partition(".")[0]))):
            return f": if it counts Unix {unit}, add --time-unit {unit}"
        if not number and self.places is not None and re.search(r"\d", text) and not re.match(r"\d{4}-\d\d", text):
            return ": if it has another form, add --time-format, such as '%d/%b/%Y:%H:%M:%S %z'"
        return ""
