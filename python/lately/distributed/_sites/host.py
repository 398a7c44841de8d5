"""A host: it holds some of the sites of a filter, and gives them to others while producers go on."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from lately.distributed._sites.interface import Maker, Plain
from lately.distributed._sites.layout import Layout, Ledger
from lately.distributed._sites.memo import Ticket
from lately.distributed._sites.site import MovedError, Site
from lately.distributed._sites.wire import refusal

LEASE = 10.0
"""Seconds after which a site that was given, and has not arrived, is taken back: who moved it may have died."""


class Host:
    """Holds the sites that the latest layout gives to it.

    Parameters
    ----------
    number : int
        Its own.
    makers : sequence of callable
        Of all sites of the filter.
    ledger : Ledger
    again : bool
        Whether there was such a host before, which has crashed.
    opened : callable, optional
        Called with each site that is made here, and whether it was here before a crash.

    Notes
    -----
    *A site that moves* is ended here, which takes its cells and its answers; and from then on its messages are refused
    with a `MovedError`, by which producers look for the layout and ask again, with the same tickets. It is made at its
    new host when a layout says so, and not before. If that is not put down within the lease, this host puts down a
    layout of its own, which says that nothing has changed, and goes on.

    *A host that begins again* does so too, before it makes a site. So what was taken from it before it crashed does not
    arrive elsewhere afterwards.
    """

    def __init__(
        self,
        number: int,
        makers: Sequence[Maker],
        ledger: Ledger,
        *,
        again: bool = False,
        opened: Callable[[Site, bool], object] = lambda *_: None,
    ) -> None:
        self._number, self._makers, self._ledger, self._again, self._opened = number, makers, ledger, again, opened
        self._lock = threading.RLock()
        self._sites: dict[int, Site] = {}
        # What was given, and until when it may be on its way; and what has arrived, by which version of the layout.
        self._given: dict[int, tuple[float, bytes]] = {}
        self._arrived: dict[int, tuple[int, bytes]] = {}
        while again and (layout := ledger.latest()) is not None and not ledger.put(layout.again()):
            pass
        layout = ledger.latest()
        for site, host in enumerate(() if layout is None else layout.places):
            if host == number:
                # A site that cannot be made reports the error at each call, and is tried again: its checkpoint may be
                # out of reach for a while.
                with suppress(Exception):
                    self.site(site)

    def call(self, asked: Sequence[tuple[int, Sequence[Plain]]]) -> list[dict[str, Any]]:
        """Answer messages of some sites: for each site what it answers, or the error that it raised (`refusal`)."""
        return [self._call(*each) for each in asked]

    def _call(self, number: int, messages: Sequence[Plain]) -> dict[str, Any]:
        try:
            site = self.site(number)
            answers = [
                site.call(method, tuple(columns), options, ticket=Ticket(*ticket) if ticket else None, fence=fence)
                for method, columns, options, ticket, fence in messages
            ]
        except Exception as error:
            return refusal(error)
        return {"incarnation": site.incarnation, "overfull": site.overfull, "answers": answers}

    def status(self, sites: Sequence[int]) -> list[dict[str, Any]]:
        """Report the states of sites (`Site.status`); of one that is not here, that error."""
        told = []
        for site in sites:
            try:
                told.append(self.site(site).status())
            except MovedError as error:
                told.append(refusal(error))
        return told

    def site(self, number: int) -> Site:
        """Give a site that is here; it is made if that is to be.

        Raises
        ------
        MovedError
            If it is elsewhere, or on its way.
        """
        site = self._sites.get(number)
        if site is None:
            with self._lock:
                site = self._sites.get(number) or self._made(number)
        return site

    def give(self, site: int) -> bytes:
        """End a site here, and give what its new host needs; the same once more if it was given before."""
        with self._lock:
            if site not in self._given:
                data = self.site(site).leave()
                del self._sites[site]
                self._given[site] = 0.0, data
            self.wait(site)
            return self._given[site][1]

    def wait(self, site: int, seconds: float = LEASE) -> None:
        """Leave a site that was given on its way for so long."""
        with self._lock:
            if site in self._given:
                self._given[site] = time.monotonic() + seconds, self._given[site][1]

    def take(self, site: int, version: int, data: bytes) -> None:
        """Have what is needed to make a site, should the layout after this version place it here."""
        with self._lock:
            self.forget(site)
            # Whoever moved it before may be late.
            if self._arrived.get(site, (0, b""))[0] <= version:
                self._arrived[site] = version, data

    def forget(self, site: int) -> None:
        """Forget a site that was given, and is elsewhere by now."""
        with self._lock:
            if not self._mine(site):
                self._given.pop(site, None)

    def close(self) -> None:
        """End all sites, after their last checkpoints."""
        errors = []
        for site in list(self._sites.values()):
            try:
                site.close()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _mine(self, site: int) -> bool:
        layout = self._ledger.latest()
        return layout is not None and layout.places[site] == self._number

    def _made(self, number: int) -> Site:
        layout = self._ledger.latest()
        if layout is None:
            raise RuntimeError("this filter is closed")
        if layout.places[number] != self._number:
            self._given.pop(number, None)
            raise MovedError(f"site {number} is elsewhere")
        if number in self._given:
            self._take_back(number, layout)
        site = self._makers[number]()
        _, data = self._arrived.get(number, (0, None))
        again = self._again and data is None
        if data is not None:
            site.arrive(data)
            del self._arrived[number]
        elif again:
            site.began_again()
        self._sites[number] = site
        self._opened(site, again)
        return site

    def _take_back(self, number: int, layout: Layout) -> None:
        until, data = self._given[number]
        if time.monotonic() < until or not self._ledger.put(layout.again()):
            raise MovedError(f"site {number} is on its way")
        self._arrived[number] = layout.version, data
        del self._given[number]
