"""Which host has which site. A host is a process that holds some of the sites of a filter, and can give them to others.

A layout has a version, and is put down once: of two who put down the same version only one does, and the other looks
again. So whoever is to hold a site from now on is known to all, whoever dies while it moves.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol


@dataclass(frozen=True)
class Layout:
    """Hosts by number, and where sites are.

    Attributes
    ----------
    version : int
    made : int
        Hosts that there ever were: a number is not used again.
    hosts : tuple of int
        Those that may hold sites.
    places : tuple of int
        Of each site, the host.
    """

    version: int
    made: int
    hosts: tuple[int, ...]
    places: tuple[int, ...]

    @classmethod
    def first(cls, sites: int, hosts: int) -> "Layout":
        """Spread sites over hosts."""
        return cls(1, hosts, tuple(range(hosts)), tuple(site * hosts // sites for site in range(sites)))

    @classmethod
    def of(cls, plain: dict[str, Any]) -> "Layout":
        """Make it from what JSON has made of it."""
        return cls(plain["version"], plain["made"], tuple(plain["hosts"]), tuple(plain["places"]))

    def plain(self) -> dict[str, Any]:
        """Give what JSON takes."""
        return asdict(self)

    def again(self) -> "Layout":
        """Give the same in a new version, which no other can be put down as."""
        return replace(self, version=self.version + 1)

    def grown(self, more: int) -> "Layout":
        """Add hosts, without sites."""
        new = range(self.made, self.made + more)
        return replace(self.again(), made=self.made + more, hosts=(*self.hosts, *new))

    def without(self, hosts: Collection[int]) -> "Layout":
        """Leave out hosts that have no sites any more."""
        return replace(self.again(), hosts=tuple(host for host in self.hosts if host not in hosts))

    def moved(self, *moves: tuple[int, int]) -> "Layout":
        """Place sites elsewhere: each is told with its new host."""
        elsewhere = dict(moves)
        places = (elsewhere.get(site, host) for site, host in enumerate(self.places))
        return replace(self.again(), places=tuple(places))

    def moves(self, hosts: Collection[int]) -> list[tuple[int, int]]:
        """Tell which sites to place elsewhere, and where, so that these hosts have as many each; the fewest."""
        fair, more = divmod(len(self.places), len(hosts))
        # Those that have most keep one more.
        order = sorted(hosts, key=lambda host: (-self.places.count(host), host))
        room = {host: fair + (i < more) for i, host in enumerate(order)}
        homeless = []
        for site, host in enumerate(self.places):
            if room.get(host, 0):
                room[host] -= 1
            else:
                homeless.append(site)
        free = [host for host, left in room.items() for _ in range(left)]
        return list(zip(homeless, free, strict=True))


class Ledger(Protocol):
    """Where layouts are put down."""

    def latest(self) -> Layout | None:
        """Give the one of the highest version; None once the filter has ended."""
        ...

    def put(self, layout: Layout) -> bool:
        """Put one down, or tell that there is one of this version."""
        ...
