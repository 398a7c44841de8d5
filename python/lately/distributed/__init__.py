"""Filters over many machines (paper 4: *One is Enough: Distributed Filtering for Duplicate Elimination*).

A filter is cut into slices, or repeated along a tree, and each piece lives on a site. Routing is written over a small
interface of sites (`Sites`), so that it runs the same in one process and on the actors of Ray.
"""

from lately._core import SlicedShape, slice_capacity
from lately.distributed._deduplicate import deduplicate
from lately.distributed._producer.exchange import FailedSitesError, FailedSitesWarning
from lately.distributed._sites.errors import CheckpointError
from lately.distributed._sites.interface import Traffic
from lately.distributed._sites.local import LocalSites
from lately.distributed._sites.ray_sites import RaySites
from lately.distributed._slices.sliced import SlicedFilter
from lately.distributed._tree.tree import BloomTree, Leaf

__all__ = [
    "BloomTree",
    "CheckpointError",
    "FailedSitesError",
    "FailedSitesWarning",
    "Leaf",
    "LocalSites",
    "RaySites",
    "SlicedFilter",
    "SlicedShape",
    "Traffic",
    "deduplicate",
    "slice_capacity",
]
