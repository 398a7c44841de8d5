"""The actors of a filter on Ray: what runs in them, and how a producer calls them.

Batches travel by the port of an actor where there is one, and all else by calls of Ray, which also carry batches while
a port cannot be reached or a connection is lost.
"""

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lately.distributed._ray import imported
from lately.distributed._sites.errors import ReplacedError, raised, refusal
from lately.distributed._sites.frames import framed
from lately.distributed._sites.incarnation import Incarnation
from lately.distributed._sites.interface import Maker, Plain
from lately.distributed._sites.lease import PAUSE, LeaseServer
from lately.distributed._sites.port import Address, Listener, LostError, UnreachableError, fits, key_of, links
from lately.distributed._sites.results import RequestId
from lately.distributed._sites.site import Site

# Seconds after which failed actors are checked while others have yet to answer.
LOOK = 1.0
# Seconds for which a port that could not be reached is not tried again.
REFUSED = 60.0
# Number of the actor that grants the lease.
LEASE_ACTOR = -1


@dataclass(frozen=True)
class Spec:
    """What an actor has of its filter.

    `filter` is the prefix of the actors' names in the cluster's store, `secret` that from which the keys of ports are
    derived (`key_of`), and `shares` has the sites of each actor.
    """

    filter: str
    secret: bytes
    ports: bool
    shares: tuple[tuple[int, ...], ...]


class _Actor:
    """A process that answers by a port and by calls of Ray."""

    def __init__(self, spec: Spec, number: int) -> None:
        self._spec, self._number = spec, number
        self._incarnation = Incarnation(f"lately/{spec.filter}/{number}")
        self._port: Address | None = None

    def _listen(self, answer: Any) -> None:
        if self._spec.ports:
            with suppress(OSError):
                node = imported().util.get_node_ip_address()
                self._port = Listener(node, key_of(self._spec.secret, self._number), answer).address
        self._incarnation.publish(self._port)


class SiteActor(_Actor):
    """Some of the sites of a filter."""

    def __init__(self, spec: Spec, number: int, makers: Mapping[int, Maker]) -> None:
        super().__init__(spec, number)
        self._makers, self._sites = makers, dict[int, Site]()
        self._lock = threading.Lock()
        for site in self._makers:
            # A site that cannot be made reports the error at each call, and is tried again: its checkpoint may be out
            # of reach for a while.
            with suppress(Exception):
                self._site(site)
        self._listen(lambda request: self._call(*request))

    def call(self, *requests: tuple[int, Sequence[Plain]]) -> tuple[Any, Address | None]:
        """Answer the messages of some sites; return the answer of each site, or its error, and the port."""
        return self._call("call", *requests), self._port

    def status(self, *sites: int) -> tuple[list[dict[str, Any]], Address | None]:
        """Report the states of sites (`Site.status`), and the port."""
        more = {"node": imported().get_runtime_context().get_node_id(), "port": self._port}
        return [self._site(site).status() | more for site in sites], self._port

    def close(self) -> None:
        """Close all sites, after their last checkpoints."""
        errors = []
        for site in list(self._sites.values()):
            try:
                site.close()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _call(self, method: str, *requests: tuple[int, Sequence[Plain]]) -> list[dict[str, Any]]:
        if method != "call":
            raise ValueError(f"a port of sites has no {method!r}")
        self._incarnation.check()
        answers = [self._answer(*request) for request in requests]
        # Again, since this process may have stood still meanwhile.
        self._incarnation.check()
        return answers

    def _answer(self, number: int, messages: Sequence[Plain]) -> dict[str, Any]:
        try:
            site = self._site(number)
            answers = []
            for method, columns, options, fields, fence in messages:
                request = RequestId(*fields) if fields else None
                answers.append(site.call(method, tuple(columns), options, request=request, fence=fence))
        except Exception as error:
            return refusal(error)
        return {"incarnation": site.incarnation, "overfull": site.overfull, "answers": answers}

    def _site(self, number: int) -> Site:
        with self._lock:
            if number not in self._sites:
                self._sites[number] = self._makers[number]()
                if self._incarnation.number > 1:
                    self._sites[number].began_again()
            return self._sites[number]


class LeaseActor(_Actor):
    """The actor that grants the lease."""

    def __init__(self, spec: Spec, number: int) -> None:
        super().__init__(spec, number)
        self._lease, self._open = LeaseServer(self._incarnation.number), False

    async def spec(self) -> Spec:
        """Return what connects a producer to the filter."""
        return self._spec

    async def call(self, method: str, *arguments: Any) -> tuple[Any, Address | None]:
        """Call a method of `LeaseServer`; return its answer, and the port."""
        if not self._open:
            self._open, loop = True, asyncio.get_running_loop()
            self._listen(lambda request: [asyncio.run_coroutine_threadsafe(self._of(*request), loop).result()])
        return await self._of(method, *arguments), self._port

    async def _of(self, method: str, *arguments: Any) -> Any:
        if method not in ("take", "renew", "hold", "give"):
            raise ValueError(f"the lease has no {method!r}")
        self._incarnation.check()
        answer = await getattr(self._lease, method)(*arguments)
        # Again, since it may have waited until a successor grants the lease.
        self._incarnation.check()
        return answer


@dataclass(frozen=True)
class Out:
    """In place of an answer: the actor did not answer in time, since a moment in seconds since 1970."""

    reason: str
    since: float


class Actors:
    """Calls the actors of a filter, and skips those that do not answer, until they do."""

    def __init__(self, handles: Mapping[int, Any], secret: bytes, deadline: float) -> None:
        self.handles, self._secret, self.deadline = dict(handles), secret, deadline
        self.ports: dict[int, Address | None] = {}
        self._forget_failures()

    def _forget_failures(self) -> None:
        self._refused: dict[Address | None, float] = {}
        self._outages: dict[int, tuple[Out, Any]] = {}
        self._dead: set[int] = set()

    def __getstate__(self) -> dict[str, Any]:
        # Another process reaches other ports and actors.
        return {name: value for name, value in vars(self).items() if name not in ("_refused", "_outages", "_dead")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._forget_failures()

    def retry(self, actor: int) -> None:
        """Call an actor that has failed at the next opportunity."""
        self._outages.pop(actor, None)

    def call(self, requests: Mapping[int, Sequence[tuple[int, Any]]], end: float) -> dict[int, Any]:
        """Send requests of sites to their actors; return what `SiteActor.call` answers, or `Out`."""
        sent = {actor: ("call", *request) for actor, request in requests.items() if actor not in self._outages}
        answers = self._by_ports(sent, end)
        for actor, answer in answers.items():
            if isinstance(answer, TimeoutError):
                answers[actor] = self._fail(actor, f"no answer within {self.deadline:g} s.")
            elif isinstance(answer, dict):
                # Of the request as a whole, not of a site.
                answers[actor] = [answer] * len(requests[actor])
        left = {actor: tuple(request) for actor, request in requests.items() if actor not in answers}
        if left:
            # An actor that keeps all waiting must not take the time of those whose connection was lost meanwhile.
            answers |= self.gather("call", left, max(end - time.monotonic(), min(LOOK, self.deadline)))
        return answers

    def of_lease(self, seconds: float, *request: Any) -> Any:
        """Call a method of `LeaseServer`, once.

        Raises a `ConnectionError` if the actor does not answer, and a RuntimeError if it has ended for good.
        """
        ray = imported()
        answer = self._by_ports({LEASE_ACTOR: request}, time.monotonic() + seconds).get(LEASE_ACTOR)
        if isinstance(answer, TimeoutError):
            # Of a node that was cut off, and not closed. Ray finds the actor elsewhere.
            self.ports[LEASE_ACTOR] = None
            raise ConnectionError(f"no answer within {seconds:g} s.")
        if isinstance(answer, dict):
            raise raised(answer["error"])
        if answer is not None:
            return answer[0]
        try:
            answer, self.ports[LEASE_ACTOR] = ray.get(self.handles[LEASE_ACTOR].call.remote(*request), timeout=seconds)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, ReplacedError):
                raise ConnectionError(str(error.cause)) from None
            raise error.cause from None
        except ray.exceptions.RayError as error:
            if isinstance(error, ray.exceptions.ActorDiedError):
                self._died(LEASE_ACTOR, error)
            raise ConnectionError(str(error).partition("\n")[0]) from None
        self._dead.discard(LEASE_ACTOR)
        return answer

    def gather(self, method: str, requests: Mapping[int, tuple[Any, ...]], patience: float) -> dict[int, Any]:
        """Call a method of actors by Ray, again while they restart; raise what a method raised, after all answers."""
        ray = imported()
        end = time.monotonic() + patience
        answers: dict[int, Any] = {actor: self._outage(actor) for actor in requests}
        again = {actor: "" for actor, outage in answers.items() if outage is None}
        pending: dict[Any, int] = {}
        errors = []
        while again or pending:
            pending |= {getattr(self.handles[actor], method).remote(*requests[actor]): actor for actor in again}
            again = {}
            left = end - time.monotonic()
            ready, _ = ray.wait(list(pending), num_returns=len(pending), timeout=max(0, min(LOOK, left)))
            for answer in ready:
                actor = pending.pop(answer)
                try:
                    answers[actor] = ray.get(answer)
                except ray.exceptions.RayTaskError as error:
                    # Ray's error only looks like the actor's; the cause is the actor's.
                    if isinstance(error.cause, ReplacedError):
                        again[actor] = str(error.cause)
                    else:
                        errors.append(error.cause)
                except ray.exceptions.RayError as error:
                    if isinstance(error, ray.exceptions.ActorDiedError):
                        self._died(actor, error)
                    again[actor] = str(error).partition("\n")[0]
                else:
                    self._dead.discard(actor)
                    if isinstance(answers[actor], tuple):
                        answers[actor], self.ports[actor] = answers[actor]
            if time.monotonic() >= end:
                for actor, reason in (again | dict.fromkeys(pending.values(), "")).items():
                    answers[actor] = self._fail(actor, f"no answer within {patience:g} s. {reason}".strip())
                break
            if again:
                time.sleep(min(PAUSE, max(0, end - time.monotonic())))
        if errors:
            raise errors[0]
        return answers

    def _by_ports(self, requests: Mapping[int, tuple[Any, ...]], end: float) -> dict[int, Any]:
        """Call actors by their ports; where that is impossible or the connection was lost, there is no answer."""
        sent = {}
        for actor, request in requests.items():
            port = self.ports.get(actor)
            if port is not None and self._refused.get(port, 0.0) < time.monotonic() and fits(frame := framed(request)):
                sent[actor] = port, key_of(self._secret, actor), frame
        answers: dict[int, Any] = {}
        for actor, answer in (links().exchange(sent, end) if sent else {}).items():
            if isinstance(answer, UnreachableError):
                self._refused[sent[actor][0]] = time.monotonic() + REFUSED
            elif isinstance(answer, LostError) or _replaced(answer):
                # What it did is unknown; Ray knows whether it is there, and starts it again.
                self.ports[actor] = None
            else:
                answers[actor] = answer
        return answers

    def _died(self, actor: int, error: Exception) -> None:
        """Raise a RuntimeError if an actor is dead for good: Ray may report one dead that is about to restart, once."""
        if actor in self._dead:
            name = "the actor of the lease" if actor == LEASE_ACTOR else f"actor {actor}"
            reason = str(error).strip().rpartition("\n")[2]
            raise RuntimeError(
                f"{name} is gone, and with it the filter: it was closed, or its driver has ended ({reason})"
            )
        self._dead.add(actor)

    def _fail(self, actor: int, reason: str) -> Out:
        out = Out(reason, time.time())
        self._outages[actor] = out, self.handles[actor].status.remote()
        return out

    def _outage(self, actor: int) -> Out | None:
        """Return the outage of an actor whose probe is unanswered, or None. Send another probe if the first failed."""
        out, probe = self._outages.get(actor, (None, None))
        if out is None:
            return None
        ray = imported()
        for patience in (0, PAUSE):
            if not ray.wait([probe], timeout=patience)[0]:
                return out
            try:
                ray.get(probe)
            except (ray.exceptions.RayTaskError, ray.exceptions.ActorDiedError):
                # It is there, and reports an error; or it is gone, as the next call finds out.
                break
            except ray.exceptions.RayError:
                probe = self.handles[actor].status.remote()
                self._outages[actor] = out, probe
            else:
                break
        else:
            return out
        self._outages.pop(actor, None)
        return None


def _replaced(answer: Any) -> bool:
    return isinstance(answer, dict) and answer["error"][0] == ReplacedError.__name__
