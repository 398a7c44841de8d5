"""What a site needs of that which it holds."""

from typing import Any, Protocol

from numpy.typing import NDArray

from lately.distributed._sites.results import State


class Contents(Protocol):
    """What a site holds: a filter, or part of one.

    Messages call its methods by name, with arrays of one row a key, and options. Methods in `writes` answer each key
    with a bool, or a message as a whole (`RequestId.index`); the others may answer anything.
    """

    writes: frozenset[str]

    @property
    def nbytes(self) -> int:
        """Bytes of its cells."""
        ...

    def fill(self) -> float:
        """Share of its cells that are set."""
        ...

    def state(self) -> State:
        """Return everything, as arrays."""
        ...

    def load(self, state: State) -> None:
        """Load what `state` gave; a ValueError if it does not fit."""
        ...

    def lost(self) -> None:
        """Note that the latest writes may be missing."""
        ...

    def overfull(self) -> str | None:
        """Return a warning once it holds more than planned; cheap to call."""
        ...

    def again(self, columns: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...] | None:
        """Return the columns by which a call can be made again later with the same effect, or None if none can."""
        ...
