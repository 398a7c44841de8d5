"""Sites on Ray: actors anywhere in the cluster hold them, and are restarted when they die.

Batches travel by the port of an actor if it has one. Everything else travels by calls of Ray, and so do batches while a
port cannot be reached or a connection is lost.
"""

import hashlib
import secrets
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Literal, Self

from lately.distributed._ray import imported
from lately.distributed._sites.actors import LEASE_ACTOR, LeaseActor, SiteActor, Spec
from lately.distributed._sites.errors import ReplacedError, decode_error
from lately.distributed._sites.frames import encode_frame
from lately.distributed._sites.incarnation import forget
from lately.distributed._sites.interface import Failed, Lease, Message, Record
from lately.distributed._sites.lease import leased
from lately.distributed._sites.port import LINKS, Address, LostError, UnreachableError, key_of
from lately.distributed._sites.site import Maker

# A site needs memory more than CPU. Ray sends a call again when it has restarted the actor. If a site has processed the
# first call, it gives the second the same answer (`RequestId`).
OPTIONS: Mapping[str, Any] = {
    "num_cpus": 0.01,
    "max_restarts": -1,
    "max_task_retries": -1,
    "scheduling_strategy": "SPREAD",
}
# Ray finds a name within a namespace. By default each driver has a namespace of its own.
NAMESPACE = "lately"
# Seconds for sites to start, to restart, and to save their last checkpoints: a cluster may have to grow.
START = 300
# Calls that may wait for the lease.
PRODUCERS = 10_000
# Least seconds for calls of Ray, if a connection was lost just before the deadline.
LEAST = 1.0
# Seconds for which a port that could not be reached is not tried again.
REFUSED = 60.0
# The error of a process that does not answer.
REPLACED = ReplacedError.__name__


class RaySites:
    """Sites held by actors of a Ray cluster.

    Parameters
    ----------
    makers : sequence of callable
        Each makes one site, and is pickled and sent to its actor. The actor calls it when it starts, and whenever Ray
        restarts the actor: then the site loads its checkpoint.
    actors : int, optional
        How many actors hold the sites, in equal shares; the default is one for each site. A filter that was closed may
        be started again with another number, from its checkpoints.
    name : str, optional
        The name by which other producers and later drivers find the sites (`RaySites.connect`). Named sites stay when
        the driver ends, until they are closed; others end with it.
    deadline : float, default 10
        Seconds that a site has to answer. A message to a site that dies meanwhile is sent again, under the same number.
    transport : {"sockets", "ray"}, default "sockets"
        How batches travel: by a TCP port of each actor, and by calls of Ray if that cannot be reached or a connection
        is lost. With "ray" there are no ports. Keys' hashes cross the network unencrypted either way.
    **options
        Options of Ray's ``actor.options``: ``num_cpus``, ``memory``, ``resources``, ``runtime_env`` and so on.

    Raises
    ------
    ImportError
        If Ray is not installed.
    ValueError
        If there are sites of that name, no makers, or the deadline is not above 0. Errors of a maker are raised here.
    TimeoutError
        If the actors have not all started within five minutes.

    Notes
    -----
    If Ray has not been started, its own rule holds: it joins the cluster of ``RAY_ADDRESS``, or starts one on this
    machine. Under ``uv run``, set ``RAY_ENABLE_UV_RUN_RUNTIME_ENV=0`` before.

    A site that has not answered within the deadline is skipped, without a wait, until it answers a probe that is sent
    to it meanwhile. It may still process the earlier message later.

    A pickled `RaySites` refers to the same sites.

    Examples
    --------
    Sites that Ray places on nodes with a disk, and that later drivers find as "seen":

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
        self._spec, self._deadline = spec, deadline
        self._actor_of = {site: actor for actor, share in enumerate(spec.shares) for site in share}
        # By actor: the handle of Ray, and the address in its latest answer.
        self._handles = handles
        self._ports: dict[int, Address | None] = {}
        # The moments until which ports are not tried again.
        self._refused: dict[Address | None, float] = {}
        # Actors that have not answered in time, each with a probe. Calls fail at once until the probe is answered.
        self._outages: dict[int, tuple[Failed, Any]] = {}
        self.incarnations: dict[int, int] = {}
        self.overfull: dict[int, str] = {}
        self._closed = False

    def __getstate__(self) -> dict[str, Any]:
        # Another process reaches other ports and actors.
        return vars(self) | {"connected": True, "_refused": {}, "_outages": {}}

    def __len__(self) -> int:
        return len(self._actor_of)

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages; see `Sites.call`. A site that raises an error does not get the other messages of the call."""
        self._check()
        # The messages of a site travel together, so that they stay in order if they are sent again.
        places: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place, message in enumerate(messages):
            places[self._actor_of[message.site]][message.site].append(place)
        requests = {
            actor: ("call", *((site, [messages[place].plain() for place in its]) for site, its in sites.items()))
            for actor, sites in places.items()
        }
        found = self._send(requests, self._deadline)
        answers: list[Any] = [None] * len(messages)
        errors = []
        for actor, sites in places.items():
            for i, (site, its) in enumerate(sites.items()):
                # An answer that is not a list is an error of the request as a whole.
                answer = found[actor][i] if isinstance(found[actor], list) else found[actor]
                if isinstance(answer, Failed):
                    parts: list[Any] = [replace(answer, site=site)] * len(its)
                elif "error" in answer:
                    errors.append(decode_error(answer["error"]))
                    continue
                else:
                    self.incarnations[site] = answer["incarnation"]
                    if answer["overfull"] is not None:
                        self.overfull[site] = answer["overfull"]
                    # Frames have lists for tuples.
                    parts = [tuple(part) if isinstance(part, list) else part for part in answer["answers"]]
                for place, part in zip(its, parts, strict=True):
                    answers[place] = part
        if errors:
            raise errors[0]
        return answers

    def lease(self, record: Record | None = None) -> AbstractContextManager[Lease]:
        """Take the lease. It lasts at most three deadlines, and ends within seconds if its producer dies."""
        self._check()
        return leased(self.of_lease, self._deadline, record)

    def status(self) -> list[dict[str, Any] | Failed]:
        """Return the state of each site (`Site.status`), and the ``node`` and the ``port`` of its actor."""
        return self._status(self._deadline)

    def _status(self, patience: float) -> list[dict[str, Any] | Failed]:
        self._check()
        requests = dict(enumerate(self._spec.shares))
        states: dict[int, dict[str, Any] | Failed] = {}
        for actor, answer in self._gather("status", requests, patience).items():
            for i, site in enumerate(requests[actor]):
                if isinstance(answer, Failed):
                    states[site] = replace(answer, site=site)
                else:
                    states[site] = answer[i]
                    self.incarnations.setdefault(site, answer[i]["incarnation"])
        return [states[site] for site in range(len(self))]

    def kill(self, site: int) -> None:
        """Kill the actor that holds a site: what it has not saved is lost. Ray starts it again."""
        imported().kill(self._handles[self._actor_of[site]], no_restart=False)

    def close(self) -> None:
        """Let the sites write their last checkpoints, and end them, for all who use them."""
        self._check()
        try:
            self._gather("close", dict.fromkeys(range(len(self._spec.shares)), ()), START)
        finally:
            self._end()

    def _end(self) -> None:
        for actor in self._handles.values():
            imported().kill(actor)
        forget(f"lately/{self._spec.filter}/")
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise RuntimeError("the sites are closed")

    def of_lease(self, seconds: float, *request: Any) -> Any:
        """Call a method of `LeaseServer`; raise `ConnectionError` if its actor does not answer within some seconds."""
        answer = self._send({LEASE_ACTOR: request}, seconds)[LEASE_ACTOR]
        if isinstance(answer, Failed):
            # A connection to a node that was cut off is not closed. Ray finds the actor elsewhere.
            self._ports[LEASE_ACTOR] = None
            raise ConnectionError(answer.reason)
        if isinstance(answer, dict):
            raise decode_error(answer["error"])
        return answer[0]

    def _send(self, requests: Mapping[int, tuple[Any, ...]], patience: float) -> dict[int, Any]:
        """Call actors by their ports, or by Ray; return the answers of `call`, an error of the call, or `Failed`."""
        end = time.monotonic() + patience
        reached = {actor: request for actor, request in requests.items() if actor not in self._outages}
        answers = self._by_ports(reached, end)
        for actor, answer in answers.items():
            if isinstance(answer, TimeoutError):
                answers[actor] = self._fail(actor, f"no answer within {patience:g} s.")
        if left := {actor: request for actor, request in requests.items() if actor not in answers}:
            # An actor that makes all wait must not use up the time of those whose connection was lost meanwhile.
            answers |= self._gather("call", left, max(end - time.monotonic(), min(LEAST, patience)))
        return answers

    def _gather(self, method: str, requests: Mapping[int, tuple[Any, ...]], patience: float) -> dict[int, Any]:
        """Call a method of actors by Ray, which waits while they restart; raise an error once all have answered."""
        ray = imported()
        answers: dict[int, Any] = {actor: self._outage(actor) for actor in requests}
        called = {
            getattr(self._handles[actor], method).remote(*requests[actor]): actor
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
                # Ray's error only resembles the actor's error, which is its cause.
                errors.append(error.cause)
            except ray.exceptions.ActorDiedError as error:
                errors.append(_gone(actor, error))
            except ray.exceptions.RayError as error:
                answers[actor] = self._fail(actor, str(error).partition("\n")[0])
            else:
                if isinstance(answers[actor], tuple):
                    answers[actor], self._ports[actor] = answers[actor]
        answers |= {called[answer]: self._fail(called[answer], f"no answer within {patience:g} s.") for answer in late}
        if errors:
            raise errors[0]
        return answers

    def _by_ports(self, requests: Mapping[int, tuple[Any, ...]], end: float) -> dict[int, Any]:
        """Call actors by their ports; leave out the answer if that is impossible, or if the connection was lost."""
        sent = {}
        for actor, request in requests.items():
            port = self._ports.get(actor)
            if port is not None and self._refused.get(port, 0.0) < time.monotonic():
                sent[actor] = port, key_of(self._spec.secret, actor), encode_frame(request)
        answers: dict[int, Any] = {}
        for actor, answer in (LINKS.exchange(sent, end) if sent else {}).items():
            if isinstance(answer, UnreachableError):
                self._refused[sent[actor][0]] = time.monotonic() + REFUSED
            elif isinstance(answer, LostError) or (isinstance(answer, dict) and answer["error"][0] == REPLACED):
                # What the actor did is unknown, or the frame is too large for a port. Ray knows whether the actor
                # lives.
                self._ports[actor] = None
            else:
                answers[actor] = answer
        return answers

    def _fail(self, actor: int, reason: str) -> Failed:
        failed = Failed(actor, reason, time.time())
        # Each call for the lease may find its actor elsewhere.
        if actor != LEASE_ACTOR:
            self._outages[actor] = failed, self._handles[actor].status.remote()
        return failed

    def _outage(self, actor: int) -> Failed | None:
        """Return the outage of an actor whose probe is unanswered, or None."""
        failed, probe = self._outages.get(actor, (None, None))
        if failed is not None and imported().wait([probe], timeout=0)[0]:
            self._outages.pop(actor, None)
            return None
        return failed


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


def _gone(actor: int, error: Exception) -> RuntimeError:
    name = "the actor of the lease" if actor == LEASE_ACTOR else f"actor {actor}"
    reason = str(error).strip().rpartition("\n")[2]
    return RuntimeError(f"{name} is gone, and with it the filter: it was closed, or its driver has ended ({reason})")
