"""Sites on Ray: actors anywhere in the cluster hold them, and are restarted when they die."""

import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Self

from lately.distributed._ray import imported
from lately.distributed._sites.actor import Actor, Spec, TurnActor
from lately.distributed._sites.calls import NAMESPACE, Calls, named
from lately.distributed._sites.interface import Failed, Maker, Record, Turn
from lately.distributed._sites.layout import Layout
from lately.distributed._sites.ledger import RayLedger
from lately.distributed._sites.routing import Out, Routed
from lately.distributed._sites.site import MovedError
from lately.distributed._sites.taking import PAUSE, RENEW, Taker

OPTIONS: Mapping[str, Any] = {"num_cpus": 0.01, "max_restarts": -1, "scheduling_strategy": "SPREAD"}
"""A site needs memory more than CPU. Ray must not retry messages: a site may have acted upon them (`Ticket`)."""

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
        if name is not None and named(name) is not None:
            raise ValueError(f"there are sites named {name!r}: RaySites.connect({name!r}) finds them")
        spec = Spec(tuple(makers), secret, transport == "sockets", self._ledger, {**OPTIONS, **options})
        self._layout = Layout.first(len(makers), number)
        self._ledger.put(self._layout)
        self._start(spec, self._layout.hosts)
        self._turns = (
            ray.remote(TurnActor)
            .options(**OPTIONS, max_concurrency=PRODUCERS, **_names(name))
            .remote(LEASE, len(makers), secret, ports=spec.ports)
        )
        self._taker = Taker(self._turns, secret, deadline)
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
        turns = named(name)
        if turns is None:
            raise ValueError(f"there are no sites named {name!r} in this cluster")
        sites = cls.__new__(cls)
        _, secret = ray.get(turns.sites.remote(), timeout=deadline)
        sites._begin(name, deadline, secret)
        sites._turns, sites._taker = turns, Taker(turns, secret, deadline)
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
        self._calls = Calls(self._prefix, self._ledger, secret, deadline)
        self.incarnations: dict[int, int] = {}
        self.overfull: dict[int, str] = {}
        self._closed = False

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self.connected = True

    def resize(self, actors: int) -> None:
        """Move sites to more actors, or to fewer, while producers go on.

        Sites move with their cells and answers, those between different actors side by side. Whoever sends keys of a
        site that is on its way waits for it, and sends them again with their number; the verdicts are as if nothing had
        moved. If an actor dies meanwhile, its sites come back as at any other time. If who calls this dies, sites stay
        where they are by then, and another call goes on.

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
        new = [host for host in layout.hosts if named(f"{self._prefix}/{host}") is None]
        if new:
            spec = imported().get(self._calls.handle(layout.places[0]).spec.remote(), timeout=START)
            self._start(spec, new)
            for answer in self._calls.gather("status", dict.fromkeys(new, ()), START).values():
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
            self._calls.end(host)

    def _hand(self, site: int, source: int, to: int, version: int) -> None:
        ray = imported()
        end = time.monotonic() + START
        # Data go from actor to actor.
        data = self._calls.handle(source).give.remote(site)
        self._got(data, end)
        took = self._calls.handle(to).take.remote(site, version, data)
        while not ray.wait([took], timeout=RENEW)[0] and time.monotonic() < end:
            self._calls.handle(source).wait.remote(site)
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
        self._calls.handle(source).wait.remote(site, 0.0)

    def _settle(self, site: int, source: int, to: int) -> None:
        self._calls.handle(source).forget.remote(site)
        # It is made by whoever asks for it first.
        self._calls.handle(to).status.remote(site)

    def _ask_hosts(
        self, method: str, asked: Mapping[int, Mapping[int, Any]], end: float
    ) -> dict[int, list[dict[str, Any]] | Out]:
        self._check()
        return self._calls.ask(method, asked, end)

    def turn(self, record: Record | None = None) -> AbstractContextManager[Turn]:
        """Take a turn; it lasts three deadlines at most, and ends within seconds if its producer dies."""
        self._check()
        return self._taker.taken(record)

    def status(self) -> list[dict[str, Any] | Failed]:
        """Ask each site how it is (`Site.status`), and on which ``node`` of the cluster."""
        return self._status(self._patience)

    def kill(self, site: int) -> None:
        """Kill the actor that holds a site: what it has not saved is gone. Ray starts it again."""
        self._look(self._layout)
        imported().kill(self._calls.handle(self._layout.places[site]), no_restart=False)

    def restart(self, site: int) -> None:
        """Wait until Ray has started a site again.

        Raises
        ------
        TimeoutError
            If that takes longer than five minutes.
        """
        self._calls.again(self._layout.places[site])
        answer = self._ask("status", {site: ()}, START)[site]
        if isinstance(answer, Failed):
            raise TimeoutError(answer.reason)

    def close(self) -> None:
        """Let the sites write their last checkpoints, and end them, for all who use them."""
        self._look(self._layout)
        try:
            self._calls.gather("close", dict.fromkeys(self._layout.hosts, ()), START)
        finally:
            self._end()

    def _end(self) -> None:
        for actor in [*map(self._calls.handle, self._layout.hosts), self._turns]:
            imported().kill(actor)
        self._ledger.end()
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise RuntimeError("the sites are closed")

    def _start(self, spec: Spec, hosts: Sequence[int]) -> None:
        """Start actors."""
        for host in hosts:
            options = {**spec.options, **_names(self._prefix, f"/{host}", lasting=self._name is not None)}
            self._calls.started(host, imported().remote(Actor).options(**options).remote(spec, host))

    def _status(self, patience: float) -> list[dict[str, Any] | Failed]:
        self._check()
        answers = self._ask("status", dict.fromkeys(range(len(self))), patience)
        return [answers[site] for site in range(len(self))]


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
