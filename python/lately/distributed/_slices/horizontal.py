"""A horizontal filter: each key belongs to one site, which holds a whole filter (paper 4, definition 1)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lately.distributed._producer.batch import Batch
from lately.distributed._producer.exchange import Exchange
from lately.distributed._sites.interface import Failed, Message
from lately.distributed._slices.routes import scatter, shares


class Horizontal:
    """The keys of each site are sent together, in the order of the batch; the site answers them as a filter does.

    Parameters
    ----------
    exchange : Exchange
    least : int
        0 if a key whose site has failed counts as seen, else it counts as new (paper 4, section 3.2).
    """

    def __init__(self, exchange: Exchange, least: int) -> None:
        self._exchange, self._unanswered = exchange, least == 0
        self.failures = 0

    def query(self, batch: Batch) -> NDArray[np.bool_]:
        """Tell which keys were inserted within the window."""
        return self._ask("query", batch)

    def insert(self, batch: Batch) -> None:
        """Insert keys."""
        self._ask("insert", batch)

    def duplicated(self, batch: Batch, *, refresh: bool) -> NDArray[np.bool_]:
        """Tell for each key whether it was there, then insert it; each site does both at once."""
        return self._ask("duplicated", batch, refresh=refresh)

    def _ask(self, method: str, batch: Batch, **options: Any) -> NDArray[np.bool_]:
        groups = shares(scatter(batch.hashes, len(self._exchange.sites)))
        columns = (batch.hashes,) if batch.moments is None else (batch.hashes, batch.moments)
        messages = [
            Message(site, method, tuple(column[index] for column in columns), options, batch.ticket(index))
            for site, index in groups
        ]
        seen = np.full(len(batch), self._unanswered)
        for (_, index), answer in zip(groups, self._exchange.call(messages), strict=True):
            if isinstance(answer, Failed):
                self.failures += len(index)
            else:
                seen[index] = answer
        return seen
