"""How messages find sites that move from host to host."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lately.distributed._sites.interface import Failed, Message
from lately.distributed._sites.layout import Layout, Ledger
from lately.distributed._sites.site import MovedError
from lately.distributed._sites.wire import raised

MOVING = 0.01
"""Seconds after which a site that is on its way is looked for again."""

PATIENCE = 300.0
"""Seconds for which it is tried to move a site: a host may be restarting."""


@dataclass(frozen=True)
class Out:
    """A host that does not answer: why, and since when."""

    reason: str
    since: float


GONE: list[dict[str, Any]] = []
"""The answer of a host that has given all its sites, and ended."""


class Routed:
    """Sends messages to the hosts of sites, and looks again for those that are elsewhere.

    Whoever is one asks hosts (`_ask_hosts`), and moves sites between them (`_hand`, `_settle`, `_keep`).

    Attributes
    ----------
    incarnations, overfull : dict
        See `Sites`.
    """

    incarnations: dict[int, int]
    overfull: dict[int, str]
    _layout: Layout
    _ledger: Ledger
    _patience: float

    def __len__(self) -> int:
        return len(self._layout.places)

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages; see `Sites.call`. A site that raises an error does not get the rest of the call."""
        places: dict[int, list[int]] = {}
        for place, message in enumerate(messages):
            places.setdefault(message.site, []).append(place)
        # A site's messages are sent together, so that they stay in order if they are sent again.
        asked = {site: [messages[place].plain() for place in its] for site, its in places.items()}
        answers: list[Any] = [None] * len(messages)
        for site, answer in self._ask("call", asked).items():
            its = places[site]
            for place, part in zip(its, [answer] * len(its) if isinstance(answer, Failed) else answer, strict=True):
                answers[place] = part
        return answers

    def _ask(self, method: str, asked: Mapping[int, Any], patience: float | None = None) -> dict[int, Any]:
        """Ask sites, wherever they are, until they have answered or their time is up.

        Raises
        ------
        Exception
            What a site has raised, once all have answered.
        """
        end = time.monotonic() + (self._patience if patience is None else patience)
        answers: dict[int, Any] = {}
        errors: list[Exception] = []
        left = dict(asked)
        while left:
            layout, moved = self._layout, {}
            hosts: dict[int, dict[int, Any]] = {}
            for site, what in left.items():
                hosts.setdefault(layout.places[site], {})[site] = what
            told = self._ask_hosts(method, hosts, end)
            for host, sites in hosts.items():
                answer = told[host]
                for i, site in enumerate(sites):
                    if isinstance(answer, Out):
                        answers[site] = Failed(site, answer.reason, answer.since)
                    elif answer is GONE or answer[i].get("error", ("",))[0] == MovedError.__name__:
                        moved[site] = left[site]
                    elif "error" in answer[i]:
                        errors.append(raised(answer[i]["error"]))
                    else:
                        answers[site] = self._told(site, answer[i])
            left = moved
            if left and not self._look(layout):
                if time.monotonic() > end:
                    late = {site: Failed(site, "it is being moved", time.time()) for site in left}
                    answers, left = answers | late, {}
                time.sleep(MOVING)
        if errors:
            raise errors[0]
        return answers

    def _told(self, site: int, answer: Mapping[str, Any]) -> Any:
        """Note what a site says of itself, and give its answers, or its status; on the wire tuples are lists."""
        if "answers" not in answer:
            self.incarnations.setdefault(site, answer["incarnation"])
            return answer
        self.incarnations[site] = answer["incarnation"]
        if answer["overfull"] is not None:
            self.overfull[site] = answer["overfull"]
        return [tuple(part) if isinstance(part, list) else part for part in answer["answers"]]

    def _look(self, before: Layout) -> bool:
        """Look for the latest layout; tell whether it is later.

        Raises
        ------
        RuntimeError
            If there is none any more.
        """
        layout = self._ledger.latest()
        if layout is None:
            raise RuntimeError("the sites are gone, and with them the filter: it was closed")
        self._layout = layout
        return layout.version > before.version

    def _spread(self, hosts: Sequence[int]) -> None:
        """Move sites, those between different hosts side by side, until these hosts have as many each."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self._look(self._layout)
            layout = self._layout
            if not set(hosts) <= set(layout.hosts):
                raise RuntimeError("others move sites at the same time, and have given up some of these hosts")
            if not (moves := layout.moves(hosts)):
                return
            if self._move(layout, _apart(layout, moves)):
                end = time.monotonic() + PATIENCE
        raise RuntimeError(f"sites were not moved to hosts {sorted({to for _, to in moves})}: some do not answer")

    def _move(self, layout: Layout, moves: Sequence[tuple[int, int]]) -> bool:
        """Move sites by a layout that follows this one; tell whether any was. Each host takes part in one move."""

        def handed(site: int, to: int) -> Exception | None:
            try:
                self._hand(site, layout.places[site], to, layout.version)
            except Exception as error:
                return error
            return None

        with ThreadPoolExecutor(len(moves), "moving") as pool:
            errors = list(pool.map(handed, *zip(*moves, strict=True)))
        done = [move for move, error in zip(moves, errors, strict=True) if error is None]
        placed = bool(done) and self._ledger.put(layout.moved(*done))
        for (site, to), error in zip(moves, errors, strict=True):
            source = layout.places[site]
            if error is None and placed:
                self._settle(site, source, to)
            elif not isinstance(error, MovedError):
                with suppress(Exception):
                    self._keep(site, source)
        for error in errors:
            if error is not None and not isinstance(error, MovedError):
                raise error
        return placed

    def _ask_hosts(
        self, method: str, asked: Mapping[int, Mapping[int, Any]], end: float
    ) -> Mapping[int, "list[dict[str, Any]] | Out"]:
        """Ask hosts for answers of sites: a list of what `Host` answers, or `GONE`."""
        raise NotImplementedError

    def _hand(self, site: int, source: int, to: int, version: int) -> None:
        """Let a host give a site, and another take it, by a layout of this version."""
        raise NotImplementedError

    def _keep(self, site: int, source: int) -> None:
        """Let a host go on with a site that it gave."""
        raise NotImplementedError

    def _settle(self, site: int, source: int, to: int) -> None:
        """Let a host begin with a site, and another forget it."""
        raise NotImplementedError


def _apart(layout: Layout, moves: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Choose moves of which no two have a host in common."""
    busy: set[int] = set()
    chosen = []
    for site, to in moves:
        if busy.isdisjoint(pair := {layout.places[site], to}):
            busy |= pair
            chosen.append((site, to))
    return chosen
