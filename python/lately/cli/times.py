"""Times in records."""

from datetime import datetime

from lately._core import read_moment


class Times:
    """Reads a field as a time: a number of Unix seconds or of another unit, ISO 8601, or text in a given format.

    Times without a zone are in UTC.
    """

    def __init__(self, field: str, unit: str = "s", format: str | None = None) -> None:
        import numpy  # noqa: F401  # the core makes arrays of times: an ImportError comes before any output

        self.field = field
        self._unit = unit
        self._format = format

    @property
    def plain(self) -> bool:
        """Whether numbers are Unix seconds, and text is ISO 8601."""
        return self._unit == "s" and self._format is None

    def read(self, value: object) -> int:
        """Return nanoseconds since the Unix epoch; an error names the field."""
        try:
            if self._format is not None and value is not None:
                return read_moment(datetime.strptime(str(value).strip(), self._format))
            if isinstance(value, str):
                value = self._parsed(value)
            if self._unit != "s" and isinstance(value, float | int) and not isinstance(value, bool) and value == value:
                value = self._counted(round(value))
            return read_moment(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"the time {self.field} {error}") from None

    def _counted(self, units: int) -> object:
        import numpy as np

        return np.array([units], np.int64).view(f"datetime64[{self._unit}]")[0]

    def _parsed(self, text: str) -> float | datetime:
        try:
            return float(text) if self._unit == "s" or not text.strip().lstrip("-").isdecimal() else int(text)
        except ValueError:
            pass
        try:
            return datetime.fromisoformat(text.strip())
        except ValueError:
            raise ValueError(f"{text!r} is neither a number of Unix seconds nor ISO 8601") from None
