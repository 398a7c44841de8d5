"""Metrics of sites on Ray's dashboard: keys, restarts and fill, from each site; failures, from producers.

They are Ray's own metrics (`ray.util.metrics`), by the names below, which Prometheus sees with ``ray_`` before them.
"""

import threading
import time
from typing import TYPE_CHECKING, Any

from lately.distributed._ray import imported

if TYPE_CHECKING:
    from lately.distributed._sites.site import Site

REPORT = 5.0
"""Seconds between two reports of a site, or a hundred times as long as one takes: for the fill all cells are read."""

NAMES = {
    "lately_keys": ("Counter", "Keys, or cells of keys, that a site has written"),
    "lately_restarts": ("Counter", "How often Ray has started a site again"),
    "lately_failures": ("Counter", "Messages that a site has not answered within the deadline"),
    "lately_fill": ("Gauge", "Share of the cells of a site that are set and live"),
}


_made: dict[str, Any] = {}


def metric(name: str) -> Any:
    """Return one of `NAMES`; each is recorded with the name or the number of a ``site``."""
    if name not in _made:
        kind, description = NAMES[name]
        _made[name] = getattr(imported("ray.util.metrics"), kind)(name, description, ("site",))
    return _made[name]


class Reporter:
    """Records the metrics of a site from time to time, in a thread of its own.

    Parameters
    ----------
    site : Site
    again : bool
        Whether there was such a site before.
    """

    def __init__(self, site: "Site", *, again: bool) -> None:
        self._site, self._reported = site, 0
        self._tags = {"site": site.status()["name"]}
        if again:
            metric("lately_restarts").inc(1, tags=self._tags)
        threading.Thread(target=self._go_on, name="metrics", daemon=True).start()

    def report(self) -> None:
        """Record what has come since the last report."""
        keys, fill = self._site.status()["keys"], self._site.call("fill", (), {})
        if keys > self._reported:
            metric("lately_keys").inc(keys - self._reported, tags=self._tags)
            self._reported = keys
        metric("lately_fill").set(fill, tags=self._tags)

    def _go_on(self) -> None:
        pause = REPORT
        while True:
            time.sleep(pause)
            began = time.monotonic()
            try:
                self.report()
            except RuntimeError:
                # The site is closed.
                return
            pause = max(REPORT, 100 * (time.monotonic() - began))
