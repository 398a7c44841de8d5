"""Bloom trees: filters near the producers, which relieve filters further away (paper 4, section 6)."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lately._core import Slice
from lately.distributed._contents.cells import TreeNode
from lately.distributed._contents.empty_filter import EmptyFilter
from lately.distributed._producer.distributed_filter import DistributedFilter
from lately.distributed._producer.exchange import Exchange
from lately.distributed._producer.orderer import SitesOrderer
from lately.distributed._producer.producer import Producer
from lately.distributed._sites.interface import Sites
from lately.distributed._sites.start import Where, start
from lately.distributed._tree.router import Counters, TreeRouter, TreeSpec
from lately.distributed._tree.topology import Topology
from lately.filters import BloomFilter, TimingBloomFilter


class BloomTree(DistributedFilter):
    """Filters in a tree whose leaves are near the producers: what a leaf has seen is answered there.

    A key is looked up at its producer's leaf, then at the nodes above, up to the root, which has all keys. Every node
    is a filter like the root, and the verdicts are those of the one filter that the root is.

    Parameters
    ----------
    kind : {"sparse", "dense"}
        Whether a key is kept at the leaf where it came first, or at every leaf where it came. Dense trees answer more
        at the leaves, and hold more there.
    parents : sequence of int, or mapping
        The parent of each node, -1 for the root; or names of nodes, to those of their parents, None for the root.
    filter : BloomFilter or TimingBloomFilter
        What each node is, empty: planned for the keys of the whole tree. With a window of time, of fixed size, or
        without one.
    top_down : int, optional
        A level d, from 1 on; the root is level 0. A match at a node of a level below d counts only if a node of level d
        confirms it, which gives fewer false positives. But each batch with keys that no node up to level d has seen
        is then written by an orderer: one at a time in the whole tree. The default is none.
    on_failure : {"raise", "duplicate", "distinct"}, default "raise"
        The verdict about a key that no node below has seen, if the root does not answer; `failures` counts these keys.
        "raise": there is none, but a `FailedSitesError` with the number by which the batch is sent again. A node below
        that fails is passed over.
    sites : {"local", "ray"} or callable, default "local"
        Where the nodes run, as in `SlicedFilter`.
    checkpoint, deadline, name : optional
        As in `SlicedFilter`.
    interval : float, default 30.0
        As in `SlicedFilter`.

    Raises
    ------
    TypeError
        If `filter` or `parents` has another type.
    ValueError
        If `filter` is not empty, has a window of insertions, grows or has equal timers; if `parents` do not form a
        tree; if another parameter is out of range.

    Notes
    -----
    Without a window a dense tree tests and sets in one message a level (paper 4, algorithm 1). A key is then set below
    before the root has answered. If the root fails it stays there, and only the same batch, sent again by its number,
    can still learn that it is new. All other trees test first, upwards, and set after the verdict (algorithm 2), the
    root first; so do dense ones with `top_down`.

    A key that was seen is not set again: there is no `refresh`, because the root does not get the answers of a leaf. A
    key passes again when its last pass is longer ago than the window. If times step back, each node uses the latest
    time that it has seen itself. The verdict may then differ from that of one filter, but a key that is reported as
    seen passed within window and slack of its own time.

    *Failures.* A node that does not answer is skipped, and its parent answers. Keys that it should have set meanwhile
    are missing from it afterwards; with `top_down` it then does not confirm them, and a key may pass twice.

    *Concurrency.* Of two producers with the same new key at the same moment, one gets the answer that it is new.

    *A batch sent again* under its number gets the same answers, with one exception: a key that was found below the root
    is new if its window is over by then, by the times that its nodes have seen since. With `top_down`, where several
    sites decide, a key of a batch that was cut off half-way may pass once more, for a producer that had it in between;
    it is never lost.

    Examples
    --------
    >>> from lately.distributed import BloomTree
    >>> tree = BloomTree("dense", {"world": None, "eu": "world", "us": "world"}, lately.BloomFilter(1000, 0.001))
    >>> tree.at("eu").duplicated(["a", "b", "a"])
    array([False, False,  True])
    >>> tree.at("us").duplicated(["a", "c"])
    array([ True, False])
    >>> tree.accesses, tree.hits
    (array([4, 5]), array([1, 1]))
    """

    def __init__(
        self,
        kind: Literal["sparse", "dense"],
        parents: Sequence[int] | NDArray[Any] | Mapping[Any, Any],
        filter: BloomFilter | TimingBloomFilter,
        *,
        top_down: int | None = None,
        on_failure: Literal["raise", "duplicate", "distinct"] = "raise",
        sites: Where = "local",
        checkpoint: str | os.PathLike[str] | None = None,
        interval: float = 30.0,
        deadline: float | None = None,
        name: str | None = None,
    ) -> None:
        if kind not in ("sparse", "dense"):
            raise ValueError(f"kind must be 'sparse' or 'dense', got {kind!r}")
        if on_failure not in ("raise", "duplicate", "distinct"):
            raise ValueError(f"on_failure must be 'raise', 'duplicate' or 'distinct', got {on_failure!r}")
        topology = Topology.of(parents)
        if not isinstance(filter, BloomFilter | TimingBloomFilter):
            raise TypeError(f"filter must be a BloomFilter or a TimingBloomFilter, got {type(filter).__name__}")
        empty = EmptyFilter.of(filter)
        if filter.parameters.get("equal_timers", 1) > 1:
            raise ValueError("filter has equal timers: a tree would not answer as one filter does")
        # Raises if the filter grows.
        Slice.bounds(filter, 1)
        if top_down is not None and not 1 <= top_down < topology.depth:
            raise ValueError(f"top_down must be a level below the root, from 1 to {topology.depth - 1}, got {top_down}")
        at_once = kind == "dense" and filter.window is None and top_down is None
        strict, unanswered = on_failure == "raise", on_failure != "distinct"
        spec = TreeSpec(topology, empty, kind, at_once, top_down or 0, unanswered, strict)
        started = start(
            [partial(TreeNode, empty)] * len(topology),
            {"parents": list(topology.parents), **empty.manifest},
            sites,
            checkpoint=checkpoint,
            interval=interval,
            deadline=deadline,
            name=name,
            orderer=partial(SitesOrderer, make=spec.writer) if top_down else None,
        )
        self._begin(spec, started, made=not started.connected)

    def _begin(self, spec: TreeSpec, sites: Sites, *, made: bool) -> None:
        self._spec, self._made = spec, made
        self._like = spec.empty.spec()
        # A node that fails is skipped. The counters decide whether a missing answer is an error.
        self._exchange = Exchange(sites, strict=False)
        self._counters = Counters(spec.topology, self._exchange, strict=spec.strict)

    def at(self, leaf: Hashable, *, producer: str | None = None) -> Leaf:
        """Return the handle of a producer at a leaf.

        Parameters
        ----------
        leaf : int or name
            A node without children.
        producer : str, optional
            Name of the producer, if a later process may send its last batch again; each batch then needs its number. No
            two producers may have the same name. The default is a new one.

        Raises
        ------
        KeyError
            If there is no such node.
        ValueError
            If it is no leaf.
        """
        number = self._spec.topology.number(leaf)
        if number not in self._spec.topology.leaves:
            raise ValueError(f"node {leaf!r} is no leaf: producers are at leaves")
        return Leaf(self, number, producer)

    @property
    def leaves(self) -> list[Hashable]:
        """list: names of the leaves."""
        return [self._spec.topology.names[leaf] for leaf in self._spec.topology.leaves]

    @property
    def accesses(self) -> NDArray[np.int64]:
        """Ndarray of int64, shape (levels,): keys that were tested or set at each level, the root's first."""
        return self._counters.accesses.copy()

    @property
    def hits(self) -> NDArray[np.int64]:
        """Ndarray of int64, shape (levels,): keys that were found at each level, the root's first."""
        return self._counters.hits.copy()

    @property
    def failures(self) -> int:
        """int: keys that were decided without a site that should have answered."""
        return self._counters.failures

    @property
    def nbytes(self) -> int:
        """int: bytes of the cells of all nodes."""
        return self._like.nbytes * len(self._spec.topology)

    def __getstate__(self) -> tuple[TreeSpec, Sites]:
        return self._spec, self._exchange.sites

    def __setstate__(self, state: tuple[TreeSpec, Sites]) -> None:
        self._begin(*state, made=False)

    def __repr__(self) -> str:
        topology = self._spec.topology
        return (
            f"<BloomTree {self._spec.kind} nodes={len(topology)} levels={topology.depth} leaves={len(topology.leaves)} "
            f"filter={self._like!r}>"
        )


class Leaf:
    """The handle of one producer at a leaf of a `BloomTree`, from `BloomTree.at`.

    It may be pickled and sent to a process that reaches the same sites. There it is a producer with a name of its own,
    or in a Ray task with that of the task (`SlicedFilter`). Calls from several threads wait for each other.
    """

    def __init__(self, tree: BloomTree, leaf: int, producer: str | None) -> None:
        self._tree, self._leaf = tree, leaf
        self._producer = Producer(tree._like, producer)
        self._router = TreeRouter(tree._spec, tree._like, leaf, tree._exchange, tree._counters)

    @property
    def number(self) -> int:
        """int: number of the last batch; 0 before the first."""
        return self._producer.number

    def duplicated(self, keys: Any, *, at: Any = None, number: int | None = None) -> NDArray[np.bool_]:
        """Return for each key in order whether it passed lately, anywhere in the tree; set it if it did not.

        Parameters
        ----------
        keys, at, number
            As in `SlicedFilter.duplicated`.

        Returns
        -------
        ndarray of bool, shape (n,)

        Raises
        ------
        TypeError, ValueError
            As by `SlicedFilter.duplicated`.
        FailedSitesError
            If no node that could decide about a key answers, unless `on_failure` allows a guess.
        """
        return self._producer.write(keys, at, number, None, self._router.duplicated, np.zeros(0, dtype=np.bool_))

    def query(self, keys: Any, *, at: Any = None) -> NDArray[np.bool_]:
        """Return which keys passed lately, anywhere in the tree; nothing is set.

        Parameters
        ----------
        keys, at
            As in `duplicated`.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        return self._router.query(self._producer.query(keys, at))

    def __reduce__(self) -> tuple[Any, ...]:
        return Leaf, (self._tree, self._leaf, None)

    def __repr__(self) -> str:
        return f"<Leaf {self._tree._spec.topology.names[self._leaf]!r} of {self._tree!r}>"
