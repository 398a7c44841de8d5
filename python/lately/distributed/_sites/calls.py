"""How the actors of a filter are asked: by their ports, or by calls of Ray, and again while they restart."""

import time
from collections.abc import Mapping
from typing import Any

from lately.distributed._ray import imported
from lately.distributed._sites.frames import framed
from lately.distributed._sites.layout import Ledger
from lately.distributed._sites.links import LostError, UnreachableError, links
from lately.distributed._sites.listener import Address
from lately.distributed._sites.metrics import metric
from lately.distributed._sites.routing import GONE, Out
from lately.distributed._sites.taking import PAUSE, gone
from lately.distributed._sites.wire import key_of

NAMESPACE = "lately"
"""Ray finds a name within a namespace; by default each driver has one of its own."""

LOOK = 1.0
"""Seconds after which failed sites are checked while others have yet to answer."""

REFUSED = 60.0
"""Seconds for which a port that could not be reached is not tried again: messages go by Ray."""


class Calls:
    """Asks actors, and remembers which of them do not answer.

    Parameters
    ----------
    prefix : str
        Of their names.
    ledger : Ledger
    secret : bytes
        What their ports ask for (`key_of`).
    deadline : float
        Seconds that they have to answer.
    """

    def __init__(self, prefix: str, ledger: Ledger, secret: bytes, deadline: float) -> None:
        self._prefix, self._ledger, self._secret, self._deadline = prefix, ledger, secret, deadline
        self._actors = dict[int, Any]()
        self._ports: dict[int, Address | None] = {}
        self._forget_failures()

    def _forget_failures(self) -> None:
        self._refused: dict[Address | None, float] = {}
        self._outages: dict[int, tuple[Out, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        # What this process can reach tells nothing of another.
        return {name: value for name, value in vars(self).items() if name not in ("_refused", "_outages")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._forget_failures()

    def handle(self, host: int) -> Any:
        """Give an actor; None if it has ended since it is not needed any more."""
        if host not in self._actors:
            actor = named(f"{self._prefix}/{host}")
            if actor is None:
                if self._retired(host):
                    return None
                raise RuntimeError(f"actor {host} is gone, and with it the filter: it was closed, or its driver ended")
            self._actors[host] = actor
        return self._actors[host]

    def started(self, host: int, actor: Any) -> None:
        """Know a new actor."""
        self._actors[host] = actor

    def end(self, host: int) -> None:
        """End an actor that holds no sites."""
        imported().kill(self.handle(host))
        self._actors.pop(host, None)

    def again(self, host: int) -> None:
        """Ask an actor that has failed."""
        self._outages.pop(host, None)

    def ask(
        self, method: str, asked: Mapping[int, Mapping[int, Any]], end: float
    ) -> dict[int, list[dict[str, Any]] | Out]:
        """Ask actors of their sites, by their ports where that is possible, and else by Ray."""
        calls = method == "call"
        answers = self._by_ports(asked, end) if calls else {}
        left: dict[int, tuple[Any, ...]] = {
            host: tuple(sites.items() if calls else sites) for host, sites in asked.items() if host not in answers
        }
        if left:
            # An actor that keeps all waiting must not take the time of those whose connection was lost meanwhile.
            patience = max(end - time.monotonic(), min(LOOK, self._deadline))
            for host, answer in self.gather(method, left, patience).items():
                if isinstance(answer, tuple):
                    answer, self._ports[host] = answer
                answers[host] = answer
        for host, answer in answers.items():
            if isinstance(answer, Out):
                for site in asked[host]:
                    metric("lately_failures").inc(1, tags={"site": str(site)})
        return answers

    def _by_ports(self, asked: Mapping[int, Mapping[int, Any]], end: float) -> dict[int, Any]:
        """Ask those actors that can be."""
        sent = {}
        for host, sites in asked.items():
            port = self._ports.get(host)
            if port is not None and host not in self._outages and self._refused.get(port, 0.0) < time.monotonic():
                sent[host] = port, key_of(self._secret, host), framed(tuple(sites.items()))
        answers: dict[int, Any] = {}
        for host, answer in (links().ask(sent, end) if sent else {}).items():
            if isinstance(answer, UnreachableError):
                self._refused[sent[host][0]] = time.monotonic() + REFUSED
            elif isinstance(answer, TimeoutError):
                answers[host] = self._fail(host, f"no answer within {self._deadline:g} s.")
            elif isinstance(answer, LostError):
                # What it did is unknown; Ray knows whether it is there, and starts it again.
                self._ports[host] = None
            elif isinstance(answer, dict):
                # What the host itself raised, of which no site knows.
                answers[host] = [answer] * len(asked[host])
            else:
                answers[host] = answer
        return answers

    def gather(self, method: str, asked: Mapping[int, tuple[Any, ...]], patience: float) -> dict[int, Any]:
        """Ask actors. Those that are restarting are asked again; those that are no more answer `GONE`."""
        ray = imported()
        end = time.monotonic() + patience
        answers: dict[int, Any] = {host: self._outage(host) for host in asked}
        again = {host: "" for host, outage in answers.items() if outage is None}
        pending: dict[Any, int] = {}
        errors = []
        dead: set[int] = set()
        while again or pending:
            for host in again:
                if (actor := self.handle(host)) is None:
                    answers[host] = GONE
                else:
                    pending[getattr(actor, method).remote(*asked[host])] = host
            again = {}
            if not pending:
                break
            left = end - time.monotonic()
            ready, _ = ray.wait(list(pending), num_returns=len(pending), timeout=max(0, min(LOOK, left)))
            for answer in ready:
                host = pending.pop(answer)
                try:
                    answers[host] = ray.get(answer)
                except ray.exceptions.RayTaskError as error:
                    # Ray's error only looks like the site's; this one is the site's.
                    errors.append(error.cause)
                except ray.exceptions.RayError as error:
                    if isinstance(error, ray.exceptions.ActorDiedError):
                        if self._retired(host):
                            answers[host] = GONE
                            continue
                        gone(f"actor {host}", error, said_before=host in dead)
                        dead.add(host)
                    again[host] = str(error).partition("\n")[0]
            if time.monotonic() >= end:
                late = dict.fromkeys(pending.values(), "")
                for host, reason in (again | late).items():
                    answers[host] = self._fail(host, f"no answer within {patience:g} s. {reason}".strip())
                break
            if again:
                time.sleep(min(PAUSE, max(0, end - time.monotonic())))
        if errors:
            raise errors[0]
        return answers

    def _fail(self, host: int, reason: str) -> Out:
        out = Out(reason, time.time())
        self._outages[host] = out, self._actors[host].status.remote()
        return out

    def _outage(self, host: int) -> Out | None:
        """Tell whether a failed actor is still out: whether its probe is unanswered. Sends a new one if that failed."""
        out, question = self._outages.get(host, (None, None))
        if out is None:
            return None
        ray = imported()
        for patience in (0, PAUSE):
            if not ray.wait([question], timeout=patience)[0]:
                return out
            try:
                ray.get(question)
            except (ray.exceptions.RayTaskError, ray.exceptions.ActorDiedError):
                # It is there, and reports an error; or it is gone, as whoever asks it will be told.
                break
            except ray.exceptions.RayError:
                question = self._actors[host].status.remote()
                self._outages[host] = out, question
            else:
                break
        else:
            return out
        self._outages.pop(host, None)
        return None

    def _retired(self, host: int) -> bool:
        """Tell whether an actor has ended since it is not needed any more."""
        layout = self._ledger.latest()
        return layout is not None and host not in layout.hosts


def named(name: str) -> Any:
    """Find an actor of a name; None if there is none."""
    try:
        return imported().get_actor(name, namespace=NAMESPACE)
    except ValueError:
        return None
