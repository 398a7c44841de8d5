"""Sites on Ray: actors anywhere in the cluster hold them, and are restarted when they die."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from lately.distributed._ray import imported
from lately.distributed._sites.actors import OrdererActor, SiteActor
from lately.distributed._sites.interface import Failed, Message, Orderer, Sites
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
# Name of the actor of the orderer, after that of the filter.
ORDERER = "orderer"
# Seconds for sites to start, to restart, and to save their last checkpoints: a cluster may have to grow.
START = 300
# Deadlines within which the orderer has done with a request: those of its calls, and of the requests before.
PATIENCE = 4


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

    Calls of Ray carry everything: no port is opened. Keys' hashes cross the network unencrypted.

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
        **options: Any,
    ) -> None:
        imported()
        if not makers:
            raise ValueError("makers is empty: a filter needs at least one site")
        if not deadline > 0:
            raise ValueError(f"deadline must be above 0 s, got {deadline}")
        number = _count(len(makers) if actors is None else actors, len(makers))
        if name is not None and _named(name) is not None:
            raise ValueError(f"there are sites named {name!r}: RaySites.connect({name!r}) finds them")
        every = range(len(makers))
        shares = [[site for site in every if site * number // len(makers) == actor] for actor in range(number)]
        handles = []
        for actor, share in enumerate(shares):
            handles.append(_started(SiteActor, name, actor, options, shares, {site: makers[site] for site in share}))
        self._setup(shares, handles, deadline)
        self.connected, self._name, self._options = False, name, options
        try:
            late = [site for site in self._status(START) if isinstance(site, Failed)]
            if late:
                raise TimeoutError(f"{len(late)} of {len(makers)} sites did not start: {late[0].reason}")
        except BaseException:
            self._end()
            raise

    @classmethod
    def connect(cls, name: str, *, deadline: float = 10.0) -> Self:
        """Find the sites of this name, which another program started.

        Raises
        ------
        ValueError
            If there are none of that name in the cluster.
        TimeoutError
            If the cluster does not answer within the deadline.
        """
        first = _named(name)
        if first is None:
            raise ValueError(f"there are no sites named {name!r} in this cluster")
        shares = imported().get(first.shares.remote(), timeout=deadline)
        handles = [first, *(_named(name, actor) for actor in range(1, len(shares)))]
        if None in handles:
            raise ValueError(f"the sites named {name!r} are closed")
        sites = cls.__new__(cls)
        sites._setup(shares, handles, deadline)
        sites._orderer = _named(name, ORDERER)
        sites.status()
        return sites

    def _setup(self, shares: Sequence[Sequence[int]], handles: Sequence[Any], deadline: float) -> None:
        self.connected, self._name, self._options = True, None, dict[str, Any]()
        self._shares, self._handles, self.deadline = shares, handles, deadline
        self._actor_of = {site: actor for actor, share in enumerate(shares) for site in share}
        self._orderer: Any = None
        # Actors that have not answered in time, each with a probe. Calls fail at once until the probe is answered.
        self._outages: dict[int, tuple[Failed, Any]] = {}
        self.incarnations: dict[int, int] = {}
        self.overfull: dict[int, str] = {}
        self._closed = False

    def __getstate__(self) -> dict[str, Any]:
        # Another process reaches other actors.
        return vars(self) | {"connected": True, "_outages": {}}

    def __len__(self) -> int:
        return len(self._actor_of)

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages; see `Sites.call`. A site that raises an error does not get the other messages of the call."""
        self._check()
        # The messages of an actor travel together, so that they stay in order if they are sent again.
        of_actor: dict[int, list[Message]] = defaultdict(list)
        for message in messages:
            of_actor[self._actor_of[message.site]].append(message)
        found: dict[int, list[Any]] = {}
        errors = []
        for actor, its in self._gather("call", of_actor, self.deadline).items():
            for site in {message.site for message in of_actor[actor]}:
                if isinstance(its, Failed):
                    found[site] = [replace(its, site=site)] * len(of_actor[actor])
                elif its[site].error is not None:
                    errors.append(its[site].error)
                else:
                    found[site] = list(its[site].answers)
                    self.incarnations[site] = its[site].incarnation
                    if its[site].overfull is not None:
                        self.overfull[site] = its[site].overfull
        if errors:
            raise errors[0]
        return [found[message.site].pop(0) for message in messages]

    def put_in_order(self, make: Callable[[Sites], Orderer]) -> None:
        """Start the actor of the orderer, with the options of the others, unless there is one."""
        if self._orderer is None:
            self._orderer = _started(OrdererActor, self._name, ORDERER, self._options, self, make)
            imported().get(self._orderer.process.remote(), timeout=START)

    def order(self, *request: Any) -> Any:
        """Call the orderer. Ray sends the request again if it has to restart the actor."""
        self._check()
        ray, patience = imported(), PATIENCE * self.deadline
        answer = self._orderer.do.remote(self.deadline, *request)
        if not ray.wait([answer], timeout=patience)[0]:
            raise TimeoutError(f"the orderer has not answered within {patience:g} s")
        try:
            return ray.get(answer)
        except ray.exceptions.ActorDiedError as error:
            raise _gone("the orderer", error) from None
        except ray.exceptions.RayActorError as error:
            raise TimeoutError(f"the orderer has not answered: {error}") from None

    def status(self) -> list[dict[str, Any] | Failed]:
        """Return the state of each site (`Site.status`), and the ``node`` of its actor."""
        return self._status(self.deadline)

    def _status(self, patience: float) -> list[dict[str, Any] | Failed]:
        self._check()
        states: dict[int, dict[str, Any] | Failed] = {}
        for actor, answer in self._gather("status", dict(enumerate(self._shares)), patience).items():
            for site in self._shares[actor]:
                if isinstance(answer, Failed):
                    states[site] = replace(answer, site=site)
                else:
                    states[site] = answer[site]
                    self.incarnations.setdefault(site, answer[site]["incarnation"])
        return [states[site] for site in range(len(self))]

    def kill(self, site: int) -> None:
        """Kill the actor that holds a site: what it has not saved is lost. Ray starts it again."""
        imported().kill(self._handles[self._actor_of[site]], no_restart=False)

    def close(self) -> None:
        """Let the sites write their last checkpoints, and end them, for all who use them."""
        self._check()
        try:
            self._gather("close", dict.fromkeys(range(len(self._shares))), START)
        finally:
            self._end()

    def _end(self) -> None:
        for actor in (*self._handles, self._orderer):
            if actor is not None:
                imported().kill(actor)
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise RuntimeError("the sites are closed")

    def _gather(self, method: str, requests: Mapping[int, Any], patience: float) -> dict[int, Any]:
        """Call a method of actors by Ray, which waits while they restart; raise an error once all have answered."""
        ray = imported()
        answers: dict[int, Any] = {actor: self._outage(actor) for actor in requests}
        called = {
            getattr(self._handles[actor], method).remote(*(() if method == "close" else (requests[actor],))): actor
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
                errors.append(_gone(f"actor {actor}", error))
            except ray.exceptions.RayError as error:
                answers[actor] = self._fail(actor, str(error).partition("\n")[0])
        answers |= {called[answer]: self._fail(called[answer], f"no answer within {patience:g} s.") for answer in late}
        if errors:
            raise errors[0]
        return answers

    def _fail(self, actor: int, reason: str) -> Failed:
        failed = Failed(actor, reason, time.time())
        self._outages[actor] = failed, self._handles[actor].shares.remote()
        return failed

    def _outage(self, actor: int) -> Failed | None:
        """Return the outage of an actor whose probe is unanswered, or None."""
        failed, probe = self._outages.get(actor, (None, None))
        if failed is not None and imported().wait([probe], timeout=0)[0]:
            self._outages.pop(actor, None)
            return None
        return failed


def _named(name: str, actor: int | str = 0) -> Any:
    """Find an actor by the name of its filter and its own; None if there is none."""
    try:
        return imported().get_actor(f"{name}/{actor}", namespace=NAMESPACE)
    except ValueError:
        return None


def _started(kind: type, name: str | None, actor: int | str, options: Mapping[str, Any], *arguments: Any) -> Any:
    """Start an actor.

    As bytes its arguments travel within the request to start it. Ray keeps others in the memory of the driver, and when
    the driver has ended, it cannot start the actor again.
    """
    ray = imported()
    names = {} if name is None else {"name": f"{name}/{actor}", "namespace": NAMESPACE, "lifetime": "detached"}
    started = ray.remote(kind).options(**{**OPTIONS, **options}, **names)
    return started.remote(ray.cloudpickle.dumps(arguments))


def _count(actors: int, sites: int) -> int:
    if not hasattr(actors, "__index__"):
        raise TypeError(f"actors must be a whole number, got {actors!r}")
    if not 1 <= actors <= sites:
        raise ValueError(f"actors must be from 1 to {sites}, as many as there are sites, got {actors}")
    return int(actors)


def _gone(what: str, error: Exception) -> RuntimeError:
    reason = str(error).strip().rpartition("\n")[2]
    return RuntimeError(f"{what} is gone, and with it the filter: it was closed, or its driver has ended ({reason})")
