"""Sites on Ray: actors anywhere in the cluster hold them, and are restarted when they die."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal, Self

from lately.distributed._ray import imported
from lately.distributed._sites.actors import LEASE_ACTOR, LeaseActor, SiteActor, Spec
from lately.distributed._sites.calls import Actors
from lately.distributed._sites.errors import raised
from lately.distributed._sites.incarnation import forget
from lately.distributed._sites.interface import Failed, Lease, Maker, Message, Record
from lately.distributed._sites.lease import LeaseClient

# A site needs memory more than CPU. Ray sends a call again when it has restarted the actor: a site that has acted upon
# the first answers the second alike (`RequestId`).
OPTIONS: Mapping[str, Any] = {
    "num_cpus": 0.01,
    "max_restarts": -1,
    "max_task_retries": -1,
    "scheduling_strategy": "SPREAD",
}
# Ray finds a name within a namespace; by default each driver has one of its own.
NAMESPACE = "lately"
# Seconds for sites to start, to restart, and to save their last checkpoints: a cluster may have to grow.
START = 300
# Calls that may wait for the lease.
PRODUCERS = 10_000


class RaySites:
    """Sites that are held by actors of a Ray cluster.

    Parameters
    ----------
    makers : sequence of callable
        Each makes a site, and is pickled to where it runs. It is called there when the actor that holds the site
        starts, and whenever Ray restarts it: then the site loads its checkpoint.
    actors : int, optional
        How many actors hold the sites, each as many; the default is one for each site. A filter that was closed may be
        started again with another number, from its checkpoints.
    name : str, optional
        The name by which other producers and later drivers find the sites (`RaySites.connect`). Named sites stay when
        the driver ends, until they are closed; others end with it.
    deadline : float, default 10
        Seconds that a site has to answer. A message to a site that dies meanwhile is sent again, under the same number.
    transport : {"sockets", "ray"}, default "sockets"
        How batches travel. Each actor has a TCP port on its node, for those who know the secret of these sites, which
        travels with their handles; where a port cannot be reached, and when a connection is lost, batches go by calls
        of Ray. With "ray" there are no ports. Keys' hashes cross the network unencrypted either way.
    **options
        What Ray's ``actor.options`` takes: ``num_cpus``, ``memory``, ``resources``, ``runtime_env`` and so on.

    Raises
    ------
    ImportError
        If Ray is not installed.
    ValueError
        If there are sites of that name, no makers, or the deadline is not above 0. What a maker raises is raised here.
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
            raise ValueError("makers is empty: a filter needs at least one site")
        if not deadline > 0:
            raise ValueError(f"deadline must be above 0 s, got {deadline}")
        if transport not in ("sockets", "ray"):
            raise ValueError(f"transport must be 'sockets' or 'ray', got {transport!r}")
        number = _count(len(makers) if actors is None else actors, len(makers))
        if name is not None and _named(name) is not None:
            raise ValueError(f"there are sites named {name!r}: RaySites.connect({name!r}) finds them")
        secret = secrets.token_bytes(32)
        every = range(len(makers))
        shares = (tuple(site for site in every if site * number // len(makers) == actor) for actor in range(number))
        spec = Spec(hashlib.sha256(secret).hexdigest(), secret, transport == "sockets", tuple(shares))
        handles = {}
        for actor, share in enumerate(spec.shares):
            started = ray.remote(SiteActor).options(**{**OPTIONS, **options}, **_names(name, f"/{actor}"))
            handles[actor] = started.remote(spec, actor, {site: makers[site] for site in share})
        lease = ray.remote(LeaseActor).options(**OPTIONS, max_concurrency=PRODUCERS, **_names(name, ""))
        handles[LEASE_ACTOR] = lease.remote(spec, LEASE_ACTOR)
        self._setup(spec, handles, deadline)
        self.connected = False
        try:
            ray.get(handles[LEASE_ACTOR].status.remote(), timeout=START)
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
            If the cluster does not answer within the deadline.
        """
        lease = _named(name)
        if lease is None:
            raise ValueError(f"there are no sites named {name!r} in this cluster")
        spec: Spec = imported().get(lease.status.remote(), timeout=deadline)
        handles = {actor: _named(f"{name}/{actor}") for actor in range(len(spec.shares))} | {LEASE_ACTOR: lease}
        if None in handles.values():
            raise ValueError(f"the sites named {name!r} are closed")
        sites = cls.__new__(cls)
        sites._setup(spec, handles, deadline)
        sites.status()
        return sites

    def _setup(self, spec: Spec, handles: Mapping[int, Any], deadline: float) -> None:
        self.connected = True
        self._actors, self._deadline = Actors(spec, handles), deadline
        self._lease = LeaseClient(self._actors.of_lease, deadline)
        self._actor_of = {site: actor for actor, share in enumerate(spec.shares) for site in share}
        self.incarnations: dict[int, int] = {}
        self.overfull: dict[int, str] = {}
        self._closed = False

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"connected": True}

    def __len__(self) -> int:
        return len(self._actor_of)

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages; see `Sites.call`. A site that raises an error does not get the rest of the call."""
        self._check()
        places: dict[int, list[int]] = {}
        for place, message in enumerate(messages):
            places.setdefault(message.site, []).append(place)
        # The messages of a site travel together, so that they stay in order if they are sent again.
        requests: dict[int, list[tuple[int, Any]]] = {}
        for site, its in places.items():
            requests.setdefault(self._actor_of[site], []).append((site, [messages[place].plain() for place in its]))
        found = self._actors.send({actor: ("call", *request) for actor, request in requests.items()}, self._deadline)
        answers: list[Any] = [None] * len(messages)
        errors = []
        for actor, request in requests.items():
            for i, (site, _) in enumerate(request):
                # What is no list is of the request as a whole.
                answer = found[actor][i] if isinstance(found[actor], list) else found[actor]
                if isinstance(answer, Failed):
                    parts: list[Any] = [replace(answer, site=site)] * len(places[site])
                elif "error" in answer:
                    errors.append(raised(answer["error"]))
                    continue
                else:
                    parts = self._noted(site, answer)
                for place, part in zip(places[site], parts, strict=True):
                    answers[place] = part
        if errors:
            raise errors[0]
        return answers

    def _noted(self, site: int, answer: Mapping[str, Any]) -> list[Any]:
        """Note the state of a site, and return its answers; in frames tuples are lists."""
        self.incarnations[site] = answer["incarnation"]
        if answer["overfull"] is not None:
            self.overfull[site] = answer["overfull"]
        return [tuple(part) if isinstance(part, list) else part for part in answer["answers"]]

    def lease(self, record: Record | None = None) -> AbstractContextManager[Lease]:
        """Take the lease; it lasts three deadlines at most, and ends within seconds if its producer dies."""
        self._check()
        return self._lease.taken(record)

    def status(self) -> list[dict[str, Any] | Failed]:
        """Return the state of each site (`Site.status`), and the ``node`` and the ``port`` of its actor."""
        return self._status(self._deadline)

    def _status(self, patience: float) -> list[dict[str, Any] | Failed]:
        self._check()
        requests = dict(enumerate(self._actors.spec.shares))
        states: dict[int, dict[str, Any] | Failed] = {}
        for actor, answer in self._actors.gather("status", requests, patience).items():
            for i, site in enumerate(requests[actor]):
                if isinstance(answer, Failed):
                    states[site] = replace(answer, site=site)
                else:
                    states[site] = answer[i]
                    self.incarnations.setdefault(site, answer[i]["incarnation"])
        return [states[site] for site in range(len(self))]

    def kill(self, site: int) -> None:
        """Kill the actor that holds a site: what it has not saved is gone. Ray starts it again."""
        imported().kill(self._actors.handles[self._actor_of[site]], no_restart=False)

    def restart(self, site: int) -> None:
        """Wait until Ray has started a site again.

        Raises
        ------
        TimeoutError
            If that takes longer than five minutes.
        """
        actor = self._actor_of[site]
        self._actors.outages.pop(actor, None)
        answer = self._actors.gather("status", {actor: (site,)}, START)[actor]
        if isinstance(answer, Failed):
            raise TimeoutError(answer.reason)

    def close(self) -> None:
        """Let the sites write their last checkpoints, and end them, for all who use them."""
        self._check()
        try:
            self._actors.gather("close", dict.fromkeys(range(len(self._actors.spec.shares)), ()), START)
        finally:
            self._end()

    def _end(self) -> None:
        for actor in self._actors.handles.values():
            imported().kill(actor)
        forget(f"lately/{self._actors.spec.filter}/")
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise RuntimeError("the sites are closed")


def _named(name: str) -> Any:
    """Find an actor by its name; None if there is none."""
    try:
        return imported().get_actor(name, namespace=NAMESPACE)
    except ValueError:
        return None


def _names(name: str | None, part: str) -> dict[str, Any]:
    return {} if name is None else {"name": name + part, "namespace": NAMESPACE, "lifetime": "detached"}


def _count(actors: int, sites: int) -> int:
    if not hasattr(actors, "__index__"):
        raise TypeError(f"actors must be a whole number, got {actors!r}")
    if not 1 <= actors <= sites:
        raise ValueError(f"actors must be from 1 to {sites}, as many as there are sites, got {actors}")
    return int(actors)
