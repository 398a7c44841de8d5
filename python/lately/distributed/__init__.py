"""The same filters over many machines (paper 4: *One is Enough: Distributed Filtering for Duplicate Elimination*).

A filter is cut into slices, or repeated along a tree, and each piece lives on a site. Routing is written over a small
interface of sites (`Sites`), so that it runs the same in one process and on the actors of Ray.
"""

from lately.distributed._exchange import FailedSitesWarning
from lately.distributed._local import LocalSites
from lately.distributed._ray import RaySites
from lately.distributed._sites import Traffic
from lately.distributed._sliced import SlicedFilter

__all__ = ["FailedSitesWarning", "LocalSites", "RaySites", "SlicedFilter", "Traffic"]
