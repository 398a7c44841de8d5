"""Sites on Ray: actors anywhere in the cluster hold them, and are restarted when they die."""

import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Self

from lately.distributed._ray import imported
from lately.distributed._sites.actor import Actor, Spec
from lately.distributed._sites.frames import framed
from lately.distributed._sites.interface import Failed, Maker, Record, Turn
from lately.distributed._sites.layout import Layout
from lately.distributed._sites.ledger import RayLedger
from lately.distributed._sites.links import LostError, UnreachableError, links
from lately.distributed._sites.listener import Address
from lately.distributed._sites.metrics import metric
from lately.distributed._sites.routing import GONE, Out, Routed
from lately.distributed._sites.site import MovedError
from lately.distributed._sites.taking import PAUSE, RENEW, gone, taken
from lately.distributed._sites.turns import Turns
from lately.distributed._sites.wire import key_of

NAMESPACE = "lately"
"""Ray finds a name within a namespace; by default each driver has one of its own."""

OPTIONS: Mapping[str, Any] = {"num_cpus": 0.01, "max_restarts": -1, "scheduling_strategy": "SPREAD"}
"""A site needs memory more than CPU. Ray must not retry messages: a site may have acted upon them (`Ticket`)."""

LOOK = 1.0
"""Seconds after which failed sites are checked while others have yet to answer."""

REFUSED = 60.0
"""Seconds for which a port that could not be reached is not tried again: messages go by Ray."""

START = 300
"""Seconds for sites to start, to restart, and to save their last checkpoints: a cluster may have to grow."""

PRODUCERS = 10_000
"""Methods that may wait for their turn."""

LEASE = 3.0
"""Seconds after which the turn of a producer that has died goes to the next."""


class RaySites(Routed):
    """Sites that are held by actors of a Ray cluster.

    Parameters
    ----------
    makers : sequence of callable
        Each makes a site, and is pickled to where it runs. It is called there when an actor that is to hold the site
        starts, and whenever Ray restarts it: then the site loads its checkpoint.
    actors : int, optional
        How many actors hold the sites, each as many; the default is one for each site. `resize` changes it.
    name : str, optional
        The name by which other producers and later drivers find the sites (`RaySites.connect`). Named sites stay when
        the driver ends, until they are closed; others end with it.
    deadline : float, default 10
        Seconds that a site has to answer. A message to a site that dies meanwhile is sent again, with the same ticket.
    transport : {"sockets", "ray"}, default "sockets"
        How messages travel. Each actor has a TCP port on its node, for those who know the secret of these sites, which
        travels with their handles; where a port cannot be reached, and when a connection is lost, messages go by calls
        of Ray. With "ray" there are no ports. Keys' hashes cross the network unencrypted either way.
    **options
        What Ray's ``actor.options`` takes: ``num_cpus``, ``memory``, ``resources``, ``runtime_env`` and so on.

    Raises
    ------
    ImportError
        If Ray is not installed.
    ValueError
        If there are sites of that name, or no sites are asked for, or the deadline is not above 0. What a maker raises
        is raised here.
    TimeoutError
        If the actors have not all started within five minutes.

    Notes
    -----
    If Ray has not been started, its own rule holds: it joins the cluster of ``RAY_ADDRESS``, or starts one on this
    machine. Under ``uv run``, set ``RAY_ENABLE_UV_RUN_RUNTIME_ENV=0`` before.

    A site that has not answered within the deadline is skipped, at no cost, until it answers a probe that is sent to it
    meanwhile. It may still act on the earlier message, later.

    A pickled `RaySites` refers to the same sites.

    Examples
    --------
    Sites that Ray puts on nodes with a disk, and that later drivers find as "seen":

    >>> from lately.distributed import RaySites, SlicedFilter
    >>> disks = lambda makers: RaySites(makers, name="seen", resources={"disk": 0.1})
    >>> f = SlicedFilter("horizontal", 8, slice, sites=disks, checkpoint="s3://bucket/seen")  # doctest: +SKIP
    >>> later = lambda makers: RaySites.connect("seen")
    >>> f = SlicedFilter("horizontal", 8, slice, sites=later)  # doctest: +SKIP
    """

    def __init__(
        self,
        makers: Sequence[Maker],
        *,
        actors: int | None = None,
        name: str | None = None,
        deadline: float = 10.0,
        transport: Literal["sockets", "ray"] = "sockets",
        **options: Any,
    ) -> None:
        ray = imported()
        if not makers:
            raise ValueError("there are no sites without makers")
        if not deadline > 0:
            raise ValueError(f"the deadline must be above 0 seconds, not {deadline}")
        if transport not in ("sockets", "ray"):
            raise ValueError(f"transport must be 'sockets' or 'ray', got {transport!r}")
        number = _count(len(makers) if actors is None else actors, len(makers))
        secret = secrets.token_bytes(32)
        self._begin(name, deadline, secret)
        self.connected = False
        if name is not None and _named(ray, name) is not None:
            raise ValueError(f"there are sites named {name!r}: RaySites.connect({name!r}) finds them")
        spec = Spec(tuple(makers), secret, transport == "sockets", self._ledger, {**OPTIONS, **options})
        self._layout = Layout.first(len(makers), number)
        self._ledger.put(self._layout)
        self._actors |= {host: self._started(spec, host) for host in self._layout.hosts}
        self._turns = (
            ray.remote(Turns)
            .options(**OPTIONS, max_concurrency=PRODUCERS, **_names(name))
            .remote(LEASE, len(makers), secret)
        )
        try:
            late = [site for site in self._status(START) if isinstance(site, Failed)]
            if late:
                raise TimeoutError(f"{len(late)} of {len(makers)} sites did not start: {late[0].reason}")
        except BaseException:
            self._end()
            raise

    @classmethod
    def connect(cls, name: str, *, deadline: float = 10.0) -> Self:
        """Find named sites.

        Raises
        ------
        ValueError
            If there are none of that name in the cluster.
        TimeoutError
            If their number is not known within the deadline.
        """
        ray = imported()
        turns = _named(ray, name)
        if turns is None:
            raise ValueError(f"there are no sites named {name!r} in this cluster")
        sites = cls.__new__(cls)
        _, secret = ray.get(turns.sites.remote(), timeout=deadline)
        sites._begin(name, deadline, secret)
        sites._turns = turns
        layout = sites._ledger.latest()
        if layout is None:
            raise ValueError(f"the sites named {name!r} are closed")
        sites._layout = layout
        sites.status()
        return sites

    def _begin(self, name: str | None, deadline: float, secret: bytes) -> None:
        self.connected = True
        self._name, self._patience, self._secret = name, deadline, secret
        filter = hashlib.sha256(secret).hexdigest()
        self._ledger: RayLedger = RayLedger(filter)
        # Of the names of its actors.
        self._prefix = name or filter[:16]
        self._actors = dict[int, Any]()
        self.incarnations: dict[int, int] = {}
        self.overfull: dict[int, str] = {}
        self._ports: dict[int, Address | None] = {}
        self._refused: dict[Address | None, float] = {}
        self._outages: dict[int, tuple[Out, Any]] = {}
        self._closed = False

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("connected", "_refused", "_outages")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._begin(state["_name"], state["_patience"], state["_secret"])
        vars(self).update(state)

    def resize(self, actors: int) -> None:
        """Move sites to more actors, or to fewer, while producers go on.

        Sites move one after the other, with their cells and answers. Whoever sends keys of a site that is on its way
        waits for it, and sends them again with their number; the verdicts are as if nothing had moved. If an actor
        dies meanwhile, its sites come back as at any other time. If who calls this dies, sites stay where they are by
        then, and another call goes on.

        Parameters
        ----------
        actors : int
            How many are to hold the sites; at most as many as there are sites.

        Raises
        ------
        ValueError
            If there are fewer sites.
        RuntimeError
            If another process moves sites at the same time; or if the sites have no name and were started by another
            process: the new actors would end with this one.
        TimeoutError
            If the new actors have not started within five minutes.
        CheckpointError
            If a site cannot save what it has; it stays where it is.
        """
        actors = _count(actors, len(self))
        if self.connected and self._name is None:
            raise RuntimeError("sites without a name can be moved only by the process that has started them")
        self._look(self._layout)
        layout = self._layout
        if (more := actors - len(layout.hosts)) > 0:
            layout = self._put(layout.grown(more))
        # Also those that somebody else has put down, who has died since.
        new = [host for host in layout.hosts if _named(imported(), f"{self._prefix}/{host}") is None]
        if new:
            spec = imported().get(self._handle(layout.places[0]).spec.remote(), timeout=START)
            self._actors |= {host: self._started(spec, host) for host in new}
            for answer in self._gather("status", dict.fromkeys(new, ()), START).values():
                if isinstance(answer, Out):
                    raise TimeoutError(f"an actor did not start: {answer.reason}")
        self._spread(layout.hosts[:actors])
        self._retire(layout.hosts[actors:])

    def _put(self, layout: Layout) -> Layout:
        if not self._ledger.put(layout):
            raise RuntimeError("others move sites at the same time")
        self._layout = layout
        return layout

    def _retire(self, hosts: Sequence[int]) -> None:
        """End actors that hold no sites."""
        if not hosts:
            return
        self._look(self._layout)
        self._put(self._layout.without(hosts))
        for host in hosts:
            imported().kill(self._handle(host))
            self._actors.pop(host, None)

    def _hand(self, site: int, source: int, to: int, version: int) -> None:
        ray = imported()
        end = time.monotonic() + START
        # Data go from actor to actor.
        data = self._handle(source).give.remote(site)
        self._got(data, end)
        took = self._handle(to).take.remote(site, version, data)
        while not ray.wait([took], timeout=RENEW)[0] and time.monotonic() < end:
            self._handle(source).wait.remote(site)
        self._got(took, end)

    def _got(self, answer: Any, end: float) -> None:
        """Wait for an actor; one that has died is waited for, and its sites are moved anew."""
        ray = imported()
        try:
            ray.get(answer, timeout=max(0, end - time.monotonic()))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.GetTimeoutError as error:
            raise TimeoutError(str(error)) from None
        except ray.exceptions.RayError as error:
            time.sleep(PAUSE)
            raise MovedError(str(error)) from None

    def _keep(self, site: int, source: int) -> None:
        self._handle(source).wait.remote(site, 0.0)

    def _settle(self, site: int, source: int, to: int) -> None:
        self._handle(source).forget.remote(site)
        # It is made by whoever asks for it first.
        self._handle(to).status.remote(site)

    def _ask_hosts(
        self, method: str, asked: Mapping[int, Mapping[int, Any]], end: float
    ) -> dict[int, list[dict[str, Any]] | Out]:
        """Ask actors, by their ports where that is possible, and else by Ray."""
        self._check()
        calls = method == "call"
        answers = self._by_ports(asked, end) if calls else {}
        left: dict[int, tuple[Any, ...]] = {
            host: tuple(sites.items() if calls else sites) for host, sites in asked.items() if host not in answers
        }
        if left:
            # An actor that keeps all waiting must not take the time of those whose connection was lost meanwhile.
            patience = max(end - time.monotonic(), min(LOOK, self._patience))
            for host, answer in self._gather(method, left, patience).items():
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
                answers[host] = self._fail(host, f"no answer within {self._patience:g} s.")
            elif isinstance(answer, LostError):
                # What it did is unknown; Ray knows whether it is there, and starts it again.
                self._ports[host] = None
            elif isinstance(answer, dict):
                # What the host itself raised, of which no site knows.
                answers[host] = [answer] * len(asked[host])
            else:
                answers[host] = answer
        return answers

    def turn(self, record: Record | None = None) -> AbstractContextManager[Turn]:
        """Take a turn; it lasts three deadlines at most, and ends within seconds if its producer dies."""
        self._check()
        return taken(self._turns, self._patience, record)

    def status(self) -> list[dict[str, Any] | Failed]:
        """Ask each site how it is (`Site.status`), and on which ``node`` of the cluster."""
        return self._status(self._patience)

    def kill(self, site: int) -> None:
        """Kill the actor that holds a site: what it has not saved is gone. Ray starts it again."""
        self._look(self._layout)
        imported().kill(self._handle(self._layout.places[site]), no_restart=False)

    def restart(self, site: int) -> None:
        """Wait until Ray has started a site again.

        Raises
        ------
        TimeoutError
            If that takes longer than five minutes.
        """
        self._outages.pop(self._layout.places[site], None)
        answer = self._ask("status", {site: ()}, START)[site]
        if isinstance(answer, Failed):
            raise TimeoutError(answer.reason)

    def close(self) -> None:
        """Let the sites write their last checkpoints, and end them, for all who use them."""
        self._look(self._layout)
        try:
            self._gather("close", dict.fromkeys(self._layout.hosts, ()), START)
        finally:
            self._end()

    def _end(self) -> None:
        for actor in [*map(self._handle, self._layout.hosts), self._turns]:
            imported().kill(actor)
        self._ledger.end()
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise RuntimeError("the sites are closed")

    def _started(self, spec: Spec, host: int) -> Any:
        """Start an actor."""
        options = {**spec.options, **_names(self._prefix, f"/{host}", lasting=self._name is not None)}
        return imported().remote(Actor).options(**options).remote(spec, host)

    def _handle(self, host: int) -> Any:
        """Give an actor; None if it has ended since it is not needed any more."""
        if host not in self._actors:
            actor = _named(imported(), f"{self._prefix}/{host}")
            if actor is None:
                if self._retired(host):
                    return None
                raise RuntimeError(f"actor {host} is gone, and with it the filter: it was closed, or its driver ended")
            self._actors[host] = actor
        return self._actors[host]

    def _status(self, patience: float) -> list[dict[str, Any] | Failed]:
        self._check()
        answers = self._ask("status", dict.fromkeys(range(len(self))), patience)
        return [answers[site] for site in range(len(self))]

    def _gather(self, method: str, asked: Mapping[int, tuple[Any, ...]], patience: float) -> dict[int, Any]:
        """Ask actors. Those that are restarting are asked again; those that are no more answer `GONE`."""
        self._check()
        ray = imported()
        end = time.monotonic() + patience
        answers: dict[int, Any] = {host: self._outage(host) for host in asked}
        again = {host: "" for host, outage in answers.items() if outage is None}
        pending: dict[Any, int] = {}
        errors = []
        dead: set[int] = set()
        while again or pending:
            for host in again:
                if (actor := self._handle(host)) is None:
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


def _names(name: str | None, part: str = "", *, lasting: bool = True) -> dict[str, Any]:
    if name is None:
        return {}
    return {"name": name + part, "namespace": NAMESPACE} | ({"lifetime": "detached"} if lasting else {})


def _count(actors: int, sites: int) -> int:
    if not hasattr(actors, "__index__"):
        raise TypeError(f"actors must be a whole number, got {actors!r}")
    if not 1 <= actors <= sites:
        raise ValueError(f"actors must be from 1 to {sites}, as many as there are sites, got {actors}")
    return int(actors)


def _named(ray: Any, name: str) -> Any:
    try:
        return ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        return None
