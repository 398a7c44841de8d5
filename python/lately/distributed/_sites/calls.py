"""Calls of the actors of a filter: by their ports, and by Ray.

Batches travel by the port of an actor where there is one, and all else by calls of Ray, which also carry batches while
a port cannot be reached or a connection is lost.
"""

import time
from collections.abc import Mapping
from typing import Any

from lately.distributed._ray import imported
from lately.distributed._sites.actors import LEASE_ACTOR, Spec
from lately.distributed._sites.errors import ReplacedError, raised
from lately.distributed._sites.frames import framed
from lately.distributed._sites.interface import Failed
from lately.distributed._sites.port import Address, LostError, UnreachableError, fits, key_of, links

# Least seconds for calls of Ray, where a connection was lost just before the deadline.
LEAST = 1.0
# Seconds for which a port that could not be reached is not tried again.
REFUSED = 60.0


class Actors:
    """The actors of a filter, by number, and how a process calls them.

    `handles` are those of Ray, and `ports` has the address of each in its latest answer. `outages` has the actors that
    have not answered in time, with a probe each: they fail at once until the probe is answered.
    """

    def __init__(self, spec: Spec, handles: Mapping[int, Any]) -> None:
        self.spec, self.handles = spec, handles
        self.ports: dict[int, Address | None] = {}
        # Until when ports are not tried again.
        self._refused: dict[Address | None, float] = {}
        self.outages: dict[int, tuple[Failed, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Another process reaches other ports and actors.
        return vars(self) | {"_refused": {}, "outages": {}}

    def of_lease(self, seconds: float, *request: Any) -> Any:
        """Call a method of `LeaseServer`; a `ConnectionError` if its actor does not answer within some seconds."""
        answer = self.send({LEASE_ACTOR: request}, seconds)[LEASE_ACTOR]
        if isinstance(answer, Failed):
            # Of a node that was cut off, and not closed. Ray finds the actor elsewhere.
            self.ports[LEASE_ACTOR] = None
            raise ConnectionError(answer.reason)
        if isinstance(answer, dict):
            raise raised(answer["error"])
        return answer[0]

    def send(self, requests: Mapping[int, tuple[Any, ...]], patience: float) -> dict[int, Any]:
        """Call actors by their ports, or by Ray; return what `call` answers, an error of the whole, or `Failed`."""
        end = time.monotonic() + patience
        reached = {actor: request for actor, request in requests.items() if actor not in self.outages}
        answers = self._by_ports(reached, end)
        for actor, answer in answers.items():
            if isinstance(answer, TimeoutError):
                answers[actor] = self._fail(actor, f"no answer within {patience:g} s.")
        if left := {actor: request for actor, request in requests.items() if actor not in answers}:
            # An actor that keeps all waiting must not take the time of those whose connection was lost meanwhile.
            answers |= self.gather("call", left, max(end - time.monotonic(), min(LEAST, patience)))
        return answers

    def gather(self, method: str, requests: Mapping[int, tuple[Any, ...]], patience: float) -> dict[int, Any]:
        """Call a method of actors by Ray, which waits while they restart; raise what one raised, after all answers."""
        ray = imported()
        answers: dict[int, Any] = {actor: self._outage(actor) for actor in requests}
        called = {
            getattr(self.handles[actor], method).remote(*requests[actor]): actor
            for actor, outage in answers.items()
            if outage is None
        }
        ready, late = ray.wait(list(called), num_returns=len(called), timeout=patience) if called else ([], [])
        errors: list[Exception] = []
        for answer in ready:
            actor = called[answer]
            try:
                answers[actor] = ray.get(answer)
            except ray.exceptions.RayTaskError as error:
                # Ray's error only looks like the actor's; the cause is the actor's.
                errors.append(error.cause)
            except ray.exceptions.ActorDiedError as error:
                errors.append(_gone(actor, error))
            except ray.exceptions.RayError as error:
                answers[actor] = self._fail(actor, str(error).partition("\n")[0])
            else:
                if isinstance(answers[actor], tuple):
                    answers[actor], self.ports[actor] = answers[actor]
        answers |= {called[answer]: self._fail(called[answer], f"no answer within {patience:g} s.") for answer in late}
        if errors:
            raise errors[0]
        return answers

    def _by_ports(self, requests: Mapping[int, tuple[Any, ...]], end: float) -> dict[int, Any]:
        """Call actors by their ports; where that is impossible or the connection was lost, there is no answer."""
        sent = {}
        for actor, request in requests.items():
            port = self.ports.get(actor)
            if port is not None and self._refused.get(port, 0.0) < time.monotonic() and fits(frame := framed(request)):
                sent[actor] = port, key_of(self.spec.secret, actor), frame
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

    def _fail(self, actor: int, reason: str) -> Failed:
        failed = Failed(actor, reason, time.time())
        # Each call for the lease may find its actor elsewhere.
        if actor != LEASE_ACTOR:
            self.outages[actor] = failed, self.handles[actor].status.remote()
        return failed

    def _outage(self, actor: int) -> Failed | None:
        """Return the outage of an actor whose probe is unanswered, or None."""
        failed, probe = self.outages.get(actor, (None, None))
        if failed is not None and imported().wait([probe], timeout=0)[0]:
            self.outages.pop(actor, None)
            return None
        return failed


def _gone(actor: int, error: Exception) -> RuntimeError:
    name = "the actor of the lease" if actor == LEASE_ACTOR else f"actor {actor}"
    reason = str(error).strip().rpartition("\n")[2]
    return RuntimeError(f"{name} is gone, and with it the filter: it was closed, or its driver has ended ({reason})")


def _replaced(answer: Any) -> bool:
    return isinstance(answer, dict) and answer["error"][0] == ReplacedError.__name__
