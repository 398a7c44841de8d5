"""Sites for given contents: in this process, on Ray, or by a function of one's own."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Literal, TypeAlias

from lately.distributed._sites.interface import Maker, Sites
from lately.distributed._sites.local import LocalSites
from lately.distributed._sites.site import Contents, Site
from lately.distributed._sites.store import store

Where: TypeAlias = Literal["local", "ray"] | Callable[[Sequence[Maker]], Sites]
"""Which sites: in this process, actors of Ray, or those a function makes from the makers."""


@dataclass(frozen=True)
class SiteMaker:
    """Makes a site, wherever it is called."""

    contents: Callable[[], Contents]
    name: str
    checkpoint: str | os.PathLike[str] | None
    interval: float

    def __call__(self) -> Site:
        """Make the site, from its checkpoint if there is one."""
        kept = None if self.checkpoint is None else store(self.checkpoint)
        return Site(self.contents(), name=self.name, store=kept, interval=self.interval)


def start(
    contents: Sequence[Callable[[], Contents]],
    sites: Where,
    *,
    checkpoint: str | os.PathLike[str] | None,
    interval: float,
    deadline: float,
    name: str | None,
) -> Sites:
    """Start a site for each of the contents.

    Parameters
    ----------
    contents : sequence of callable
        Each makes the contents of a site; they can be pickled.
    sites : {"local", "ray"} or callable
        Where they run. A callable is passed the makers of the sites.
    checkpoint : path or address, or None
        Where they keep their checkpoints; None for none.
    interval : float
        Most seconds from a change to its checkpoint.
    deadline : float
        Seconds that a site has to answer. Sites of this process have none.
    name : str or None
        Prefix of the sites' names, by which their checkpoints are found again.

    Raises
    ------
    ValueError
        If `sites` is another word or gives another number of sites, or `interval` or `deadline` is out of range.
    """
    if not interval >= 0:
        raise ValueError(f"interval must be at least 0 s, got {interval}")
    if not deadline > 0:
        raise ValueError(f"deadline must be above 0 s, got {deadline}")
    makers = [
        SiteMaker(content, f"{name or 'site'}-{i}-of-{len(contents)}", checkpoint, interval)
        for i, content in enumerate(contents)
    ]
    if callable(sites):
        given = sites(makers)
        if len(given) != len(makers):
            # They may be existing sites of another filter.
            raise ValueError(f"this filter has {len(makers)} sites, but {len(given)} were given")
        return given
    if sites == "local":
        return LocalSites(makers)
    if sites == "ray":
        # Imported only when needed: Ray takes seconds.
        started: Sites = import_module("lately.distributed._sites.actors").RaySites(
            makers, name=name, deadline=deadline
        )
        return started
    raise ValueError(f"sites must be 'local', 'ray' or a function that starts them, got {sites!r}")
