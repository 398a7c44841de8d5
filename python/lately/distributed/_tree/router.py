"""The path of a batch through a Bloom tree, from a leaf to the root (paper 4, section 6)."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lately._core import FilterSpec
from lately.distributed._contents.empty_filter import NEVER, EmptyFilter
from lately.distributed._producer.exchange import Exchange, FailedSitesError
from lately.distributed._producer.orderer import OrderedExchange
from lately.distributed._producer.producer import Batch
from lately.distributed._sites.interface import Failed, Message, Record
from lately.distributed._sites.results import UNKNOWN
from lately.distributed._tree.topology import Topology

_Rows = NDArray[np.int64]


@dataclass(frozen=True)
class TreeSpec:
    """The parameters of a tree of filters like `empty`, one a node, which all its producers share (paper 4, section 6).

    With `test_and_set` a node that misses a key sets it at once (algorithm 1), not after the verdict (algorithm 2). A
    match at a node above the level `threshold` must be confirmed at that level, from below; 0 demands nothing. If the
    node that decides about a key has failed, a `strict` tree raises `FailedSitesError`, and another has the verdict
    `unanswered`.
    """

    topology: Topology
    empty: EmptyFilter
    kind: Literal["sparse", "dense"]
    test_and_set: bool
    threshold: int
    unanswered: bool
    strict: bool

    def writer(self, exchange: OrderedExchange) -> "TreeWriter":
        """Return the orderer's part: it decides about keys that no node up to the threshold has seen."""
        return TreeWriter(self, exchange)


class Counters:
    """Counts of the keys that were tested or set at the nodes of each level, and of those found there.

    `failures` counts keys that were decided without an answer; if the counters are `strict`, such a key is an error.
    """

    def __init__(self, topology: Topology, exchange: Exchange | OrderedExchange, *, strict: bool) -> None:
        self._topology, self._exchange, self._strict = topology, exchange, strict
        self.accesses = np.zeros(topology.depth, dtype=np.int64)
        self.hits = np.zeros(topology.depth, dtype=np.int64)
        self.failures = 0
        self._lock = threading.Lock()

    def count(self, node: int, *, accesses: int = 0, hits: int = 0) -> None:
        """Add keys that were tested or set at a node, and keys that were found there."""
        level = self._topology.levels[node]
        with self._lock:
            self.accesses[level] += accesses
            self.hits[level] += hits

    def fail(self, keys: int) -> None:
        """Add keys that are decided, or not written, without an answer."""
        with self._lock:
            self.failures += keys
        if keys and self._strict:
            raise FailedSitesError(tuple(self._exchange.failed.values()))

    def add(self, accesses: NDArray[np.int64], hits: NDArray[np.int64], failures: int) -> None:
        """Add the counts of other counters."""
        with self._lock:
            self.accesses += accesses
            self.hits += hits
            self.failures += failures


class _Found:
    """A batch on its way through a tree, and the results for its n keys.

    `verdicts` are 0 for new, 1 for seen, or `UNKNOWN`. `steps` has the step of the path at which a key was found,
    `oldest` the generation in which the oldest of its cells was set there, or `NEVER`.
    """

    def __init__(self, batch: Batch, like: FilterSpec) -> None:
        n = len(batch)
        self.batch, self.generations = batch, like.generations(batch.moments, n)
        self.verdicts = np.full(n, UNKNOWN, dtype=np.int8)
        self.steps = np.zeros(n, dtype=np.int64)
        self.oldest = np.full(n, NEVER)

    @property
    def answer(self) -> NDArray[np.bool_]:
        """The verdicts, once all of them are known."""
        answer: NDArray[np.bool_] = self.verdicts == 1
        return answer

    def open(self) -> _Rows:
        """Return the rows of keys without a verdict."""
        return np.flatnonzero(self.verdicts == UNKNOWN)

    def seen(self, rows: _Rows, step: int, oldest: NDArray[np.int64]) -> None:
        """Record keys that were found."""
        self.verdicts[rows], self.steps[rows], self.oldest[rows] = 1, step, oldest

    def message(self, node: int, method: str, rows: _Rows, *columns: NDArray[Any]) -> Message:
        """Make a message to a node about some keys: their hashes, and other columns."""
        request = None if method == "test" else self.batch.request(rows)
        return Message(node, method, (self.batch.hashes[rows], *columns), request=request)


class TreeRouter:
    """The algorithms of a tree, for the producers at one leaf.

    *The verdicts are those of a single filter* with the root's parameters (erratum OIE-11), if times do not step back,
    no node fails, and no match has to be confirmed. Consider a tree that tests first and then sets. A cell of any node
    is never younger than that cell of the root, and the root is the single filter. The reason: a new key is set in the
    root first, then below, all in its own generation. A dense tree that sets a key found at a node above does so in the
    generation of the oldest of the key's cells *there*, so no cell becomes younger than above, and no window longer. So
    a match anywhere is a match in the root: the single filter would answer "seen" and, as it does not refresh, set
    nothing. What no node matches, the root decides, in order and as one act. A tree that tests and sets at once holds
    bits only, and what it has set below is set in the root by the end of the batch.

    A batch goes up level by level, so keys of one batch do not see each other below the deciding node. That changes
    where a repeated key is found, not the verdict.

    *Top-down testing* follows a match at a node of a level below `threshold` (the root is level 0). It tests the node's
    children other than the one the key came from, and their children, down to the threshold. The paper calls the key
    new if all miss. But the key may have come from further off, while the match was false. So testing goes on at the
    next node up, and the key is new only if no match is confirmed, up to the root. A true duplicate is in all nodes
    from some leaf to the root, so the first node on both paths confirms it. The confirming nodes are not tested in one
    act, so the orderer does this. The deciding node is then the one on the path at the threshold.
    """

    def __init__(
        self,
        spec: TreeSpec,
        like: FilterSpec,
        leaf: int,
        exchange: Exchange | OrderedExchange,
        counters: Counters,
    ) -> None:
        self._leaf = leaf
        self._spec, self._topology, self._like = spec, spec.topology, like
        self._exchange, self._counters = exchange, counters
        self._path = spec.topology.path(leaf)
        # The first step, from the leaf up, whose node may decide about a key that is new there.
        self._decider = next(i for i, node in enumerate(self._path) if spec.topology.levels[node] <= spec.threshold)

    def query(self, batch: Batch) -> NDArray[np.bool_]:
        """Return which keys were set within the window."""
        found = _Found(batch, self._like)
        decider = self._ascend(found)
        if decider is None:
            self._undecided(found)
        else:
            self._confirm_from_below(found, decider)
        return found.answer

    def duplicated(self, batch: Batch) -> NDArray[np.bool_]:
        """Return for each key in order whether it was there, and set it if not.

        If the batch may have been sent before, the earlier answers of the nodes are read first. They stay valid,
        because another producer may have got the answer "seen" because of them.
        """
        return (self._test_and_set if self._spec.test_and_set else self._first_test_then_set)(batch)

    def _test_and_set(self, batch: Batch) -> NDArray[np.bool_]:
        """Test a batch from leaf to root, and set at once what a node lacks (algorithm 1); return the verdicts."""
        found = _Found(batch, self._like)
        first = (self._recall(found) if batch.again else None) or 0
        for step, node in enumerate(self._path[first:], first):
            if not len(rows := found.open()):
                break
            answer = self._duplicated(found, node, rows)
            if not isinstance(answer, Failed):
                found.verdicts[rows[answer]] = 1
                if step == len(self._path) - 1:
                    found.verdicts[rows[~answer]] = 0
        self._undecided(found)
        return found.answer

    def _first_test_then_set(self, batch: Batch) -> NDArray[np.bool_]:
        """Test a batch upwards, decide, and set new keys downwards (algorithm 2); return the verdicts."""
        found, decider = _Found(batch, self._like), None
        if batch.again:
            decider = self._recall(found)
            # Keys answered as new may not be set everywhere yet; they come before their repeats in the batch.
            self._set(found, np.flatnonzero(found.verdicts == 0), None)
        if decider is None:
            decider = self._ascend(found)
        if len(found.open()) and decider is not None and decider < len(self._path) - 1:
            # There is something to test above the deciding node.
            assert isinstance(self._exchange, Exchange)
            found.verdicts, counts = self._exchange.order(self._leaf, found, decider)
            self._counters.add(*counts)
            return found.answer
        self.finish(found, decider)
        return found.answer

    def finish(self, found: _Found, decider: int | None) -> None:
        """Decide about the keys that no node has seen up to the one at step `decider`, and set them."""
        if decider is not None:
            self._confirm_from_below(found, decider)
        rows = found.open()
        if decider is not None and len(rows):
            answer = self._duplicated(found, self._path[decider], rows)
            if not isinstance(answer, Failed):
                found.verdicts[rows] = answer
        self._undecided(found)
        new = rows[found.verdicts[rows] == 0]
        self._set(found, new, len(self._path) - 1 if decider is None else decider)

    def _test(self, found: _Found, tests: Sequence[tuple[int, _Rows]]) -> list[Any]:
        """Read at some nodes when the oldest cell of some keys was set, or `NEVER` if a key is new there."""
        for node, rows in tests:
            self._counters.count(node, accesses=len(rows))
        return self._exchange.call([found.message(node, "test", rows, found.generations[rows]) for node, rows in tests])

    def _duplicated(self, found: _Found, node: int, rows: _Rows) -> NDArray[np.bool_] | Failed:
        """Test keys at a node, then set them; the lock of the site makes it one step."""
        self._counters.count(node, accesses=len(rows))
        message = found.message(node, "duplicated", rows, found.generations[rows])
        answer: NDArray[np.bool_] | Failed = self._exchange.call([message])[0]
        if not isinstance(answer, Failed):
            self._counters.count(node, hits=int(answer.sum()))
        return answer

    def _recall(self, found: _Found) -> int | None:
        """Use the verdicts that were given when this batch came before; return the deciding step, if that is known.

        It is known if a node that may have decided does not answer. That node may have set the keys itself, and other
        producers may have found them there and set them below. So no match proves anything, and a node that remembers
        the batch decides.
        """
        every = np.arange(len(found.batch))
        answers = self._exchange.call([found.message(node, "recall", every) for node in self._path])
        for step, answer in enumerate(answers):
            if isinstance(answer, Failed):
                continue
            known = answer[1]
            if self._spec.test_and_set and step < len(self._path) - 1:
                # A miss at a node below is not a verdict yet.
                known = np.where(known == 0, UNKNOWN, known)
            found.verdicts = np.where(known == UNKNOWN, found.verdicts, known)
        answered = [step for step in range(self._decider, len(answers)) if not isinstance(answers[step], Failed)]
        return None if len(answered) == len(answers) - self._decider else next(iter(answered), len(answers) - 1)

    def _ascend(self, found: _Found) -> int | None:
        """Test from the leaf up to the deciding node; return its step, or None if no node answered that could decide.

        A node that fails is skipped.
        """
        for step, node in enumerate(self._path):
            if not len(rows := found.open()):
                return self._decider
            answer = self._test(found, [(node, rows)])[0]
            if isinstance(answer, Failed):
                continue
            hit = answer != NEVER
            self._counters.count(node, hits=int(hit.sum()))
            found.seen(rows[hit], step, answer[hit])
            if step >= self._decider:
                return step
        return None

    def _confirm_from_below(self, found: _Found, decider: int) -> None:
        """Test the nodes above the deciding one, and confirm from below what they match."""
        for step in range(decider + 1, len(self._path)):
            if not len(rows := found.open()):
                return
            node = self._path[step]
            answer = self._test(found, [(node, rows)])[0]
            if isinstance(answer, Failed):
                # Its children together contain what it contained.
                answer, suspects = np.full(len(rows), NEVER), rows
            else:
                suspects = rows[answer != NEVER]
            others = [(child, suspects) for child in self._topology.children[node] if child != self._path[step - 1]]
            seen = self._confirmed(found, others)[rows]
            self._counters.count(node, hits=int(seen.sum()))
            found.seen(rows[seen], step, answer[seen])

    def _confirmed(self, found: _Found, tests: list[tuple[int, _Rows]]) -> NDArray[np.bool_]:
        """Test nodes, and after matches their children, down to the threshold; return which keys were found there."""
        seen = np.zeros(len(found.batch), dtype=np.bool_)
        unanswered = seen.copy()
        while tests := [(node, left) for node, rows in tests if len(left := rows[~seen[rows]])]:
            deeper = []
            for (node, rows), answer in zip(tests, self._test(found, tests), strict=True):
                children, failed = self._topology.children[node], isinstance(answer, Failed)
                hit = rows if failed else rows[answer != NEVER]
                if failed and not children:
                    unanswered[rows] = True
                elif not failed and (not children or self._topology.levels[node] >= self._spec.threshold):
                    seen[hit] = True
                else:
                    deeper += [(child, hit) for child in children]
            tests = deeper
        unanswered &= ~seen
        self._counters.fail(int(unanswered.sum()))
        return seen | unanswered if self._spec.unanswered else seen

    def _set(self, found: _Found, new: _Rows, decided: int | None) -> None:
        """Set new keys on the whole path. In a dense tree, set the other keys below the node where they were found.

        `decided` is the step of the node that has already set the new keys in itself.
        """
        length = np.where(found.oldest != NEVER, found.steps if self._spec.kind == "dense" else 0, 0)
        length[new] = len(self._path)
        as_of = found.oldest.copy()
        as_of[new] = found.generations[new]
        messages, at_root = [], 0
        for step in reversed(range(len(self._path))):
            unset = length > step
            if step == decided:
                unset[new] = False
            if len(rows := np.flatnonzero(unset)):
                node = self._path[step]
                at_root += len(rows) if node == self._topology.root else 0
                self._counters.count(node, accesses=len(rows))
                messages.append(found.message(node, "set", rows, as_of[rows], found.verdicts[rows] == 1))
        answers = self._exchange.call(messages)
        # A node below that fails misses keys, which the root has.
        if at_root and isinstance(answers[0], Failed):
            self._counters.fail(at_root)

    def _undecided(self, found: _Found) -> None:
        """Give keys without a verdict the one that replaces a missing answer."""
        rows = found.open()
        self._counters.fail(len(rows))
        found.verdicts[rows] = self._spec.unanswered


class TreeWriter:
    """Decides for the orderer of a tree. A batch that is cut off has no record (`BloomTree`)."""

    def __init__(self, spec: TreeSpec, exchange: OrderedExchange) -> None:
        self._spec, self._like, self._exchange = spec, spec.empty.spec(), exchange

    def write(self, leaf: int, found: _Found, decider: int) -> tuple[NDArray[np.int8], tuple[Any, ...]]:
        """Finish a batch of a leaf; return its verdicts, and the counts."""
        # What comes from another process lies in memory that is shared.
        found.verdicts, found.steps, found.oldest = found.verdicts.copy(), found.steps.copy(), found.oldest.copy()
        counters = Counters(self._spec.topology, self._exchange, strict=self._spec.strict)
        TreeRouter(self._spec, self._like, leaf, self._exchange, counters).finish(found, decider)
        return found.verdicts, (counters.accesses, counters.hits, counters.failures)

    def complete(self, record: Record) -> None:
        """Do nothing: no site has a record."""
