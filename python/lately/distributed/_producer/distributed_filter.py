"""The base class of filters over many sites."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec
from lately.distributed._contents.empty_filter import shared_seed
from lately.distributed._producer.exchange import Exchange
from lately.distributed._sites.interface import Failed, Message, Sites, Traffic


class DistributedFilter:
    """The base of sliced filters and Bloom trees: a handle of one producer or more."""

    _like: FilterSpec
    _exchange: Exchange
    _made: bool

    @property
    def sites(self) -> Sites:
        """The sites, by number."""
        return self._exchange.sites

    @property
    def window(self) -> float | None:
        """The window in seconds; None for a filter that forgets nothing."""
        return self._like.window

    @property
    def slack(self) -> float:
        """Seconds after leaving the window that a key may still be reported."""
        return self._like.slack

    @property
    def lateness(self) -> float | None:
        """Seconds that times may step back."""
        return self._like.lateness

    @property
    def seed(self) -> int:
        """Seed of the key hashes."""
        return shared_seed(self._like)

    @property
    def fpr(self) -> float:
        """Chance that a key never inserted is reported, at the worst phase and planned load, while all sites answer."""
        return self._like.fpr

    @property
    def traffic(self) -> Traffic:
        """Counts of what the producers of this handle sent and received."""
        return self._exchange.traffic

    @property
    def restarts(self) -> int:
        """How often the producers of this handle noticed that a site came back without its latest writes."""
        return self._exchange.restarts

    @property
    def fill(self) -> NDArray[np.float64]:
        """Share of the cells of each site that are set and live; NaN for a site that does not answer."""
        answers = self.sites.call([Message(site, "fill", ()) for site in range(len(self.sites))])
        return np.array([np.nan if isinstance(answer, Failed) else answer for answer in answers])

    def status(self) -> list[dict[str, Any] | Failed]:
        """Return the state of each site: name and bytes, whether it was restored, how many checkpoints it wrote."""
        return self.sites.status()

    def close(self) -> None:
        """End the sites for all producers, after their last checkpoints, if this handle started them.

        A handle that was connected, copied or pickled only disconnects. To end sites that it did not start, close
        `sites` itself.
        """
        self._exchange.close()
        if self._made:
            self.sites.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
