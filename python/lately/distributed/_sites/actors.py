"""Sites on Ray: each an actor, anywhere in the cluster, restarted when it dies."""

import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Self

from lately.distributed._ray import imported
from lately.distributed._sites.actor import Actor
from lately.distributed._sites.frames import framed
from lately.distributed._sites.interface import Failed, Maker, Message, Plain, Record, Turn
from lately.distributed._sites.links import LostError, UnreachableError, links
from lately.distributed._sites.listener import Address
from lately.distributed._sites.metrics import metric
from lately.distributed._sites.site import SupersededError
from lately.distributed._sites.turns import Turns
from lately.distributed._sites.wire import key_of, raised

NAMESPACE = "lately"
"""Ray finds a name within a namespace; by default each driver has one of its own."""

OPTIONS: Mapping[str, Any] = {"num_cpus": 0.01, "max_restarts": -1, "scheduling_strategy": "SPREAD"}
"""A site needs memory more than CPU. Ray must not retry messages: a site may have acted upon them (`Ticket`)."""

PAUSE = 0.1
"""Seconds before a message is sent again to a site that is being restarted. A local restart takes about two."""

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

RENEW = 1.0
"""Seconds after which a producer that lives says so."""

LONGEST = 3
"""Deadlines that a turn lasts at most: to read, to write, and one spare."""


class RaySites:
    """Sites that are actors of a Ray cluster.

    Parameters
    ----------
    makers : sequence of callable
        Each makes a site, and is pickled to where it runs. It is called there when the actor starts, and whenever Ray
        restarts it: then its site loads its checkpoint.
    name : str, optional
        The name by which other producers and later drivers find the sites (`RaySites.connect`). Named sites stay when
        the driver ends, until they are closed; others end with it.
    deadline : float, default 10
        Seconds that a site has to answer. A message to a site that dies meanwhile is sent again, with the same ticket.
    transport : {"sockets", "ray"}, default "sockets"
        How messages travel. Each site has a TCP port on its node, for those who know the secret of these sites, which
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
        name: str | None = None,
        deadline: float = 10.0,
        transport: Literal["sockets", "ray"] = "sockets",
        **options: Any,
    ) -> None:
        if not makers:
            raise ValueError("there are no sites without makers")
        if not deadline > 0:
            raise ValueError(f"the deadline must be above 0 seconds, not {deadline}")
        if transport not in ("sockets", "ray"):
            raise ValueError(f"transport must be 'sockets' or 'ray', got {transport!r}")
        ray = imported()
        secret = secrets.token_bytes(32)
        self._begin(deadline, secret)
        self.connected = False
        if name is not None and _named(ray, name) is not None:
            raise ValueError(f"there are sites named {name!r}: RaySites.connect({name!r}) finds them")
        options = {**OPTIONS, **options}
        actors, turns = ray.remote(Actor), ray.remote(Turns)
        self._actors = [
            actors.options(**options, **_names(name, f"/{i}")).remote(
                maker, key_of(secret, i) if transport == "sockets" else None
            )
            for i, maker in enumerate(makers)
        ]
        self._turns = turns.options(**OPTIONS, max_concurrency=PRODUCERS, **_names(name)).remote(
            LEASE, len(makers), secret
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
        number, secret = ray.get(turns.sites.remote(), timeout=deadline)
        sites._begin(deadline, secret)
        sites._turns = turns
        sites._actors = [ray.get_actor(f"{name}/{i}", namespace=NAMESPACE) for i in range(number)]
        sites.status()
        return sites

    def _begin(self, deadline: float, secret: bytes) -> None:
        self.connected = True
        self._deadline, self._secret = deadline, secret
        self.incarnations: dict[int, int] = {}
        self.overfull: dict[int, str] = {}
        self._ports: dict[int, Address | None] = {}
        self._refused: dict[Address | None, float] = {}
        self._outages: dict[int, tuple[Failed, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("connected", "_refused", "_outages")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._begin(state["_deadline"], state["_secret"])
        vars(self).update(state)

    def __len__(self) -> int:
        return len(self._actors)

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages; see `Sites.call`. A site that raises an error does not get the rest of the call."""
        places: dict[int, list[int]] = {}
        for place, message in enumerate(messages):
            places.setdefault(message.site, []).append(place)
        # One actor's messages are sent together, so that they stay in order if they are sent again.
        asked = {site: tuple(messages[place].plain() for place in its) for site, its in places.items()}
        answers: list[Any] = [None] * len(messages)
        for site, answer in self._call(asked).items():
            its = places[site]
            for place, part in zip(its, [answer] * len(its) if isinstance(answer, Failed) else answer, strict=True):
                answers[place] = part
        return answers

    def _call(self, asked: "Mapping[int, tuple[Plain, ...]]") -> dict[int, Any]:
        """Ask sites, by their ports where that is possible, and else by Ray."""
        self._check()
        end = time.monotonic() + self._deadline
        answers, errors = self._by_ports(asked, end)
        left = {site: plain for site, plain in asked.items() if site not in answers}
        try:
            if left:
                # A site that keeps all waiting must not take the time of those whose connection was lost meanwhile.
                patience = max(end - time.monotonic(), min(LOOK, self._deadline))
                for site, answer in self._gather("call", left, patience).items():
                    if not isinstance(answer, Failed):
                        told, self._ports[site] = answer
                        answer = self._told(site, told)
                    answers[site] = answer
        except Exception as error:
            errors.append(error)
        if errors:
            raise errors[0]
        return answers

    def _by_ports(self, asked: "Mapping[int, tuple[Plain, ...]]", end: float) -> tuple[dict[int, Any], list[Exception]]:
        """Ask those sites that can be; the errors that sites raised lie beside the answers."""
        sent = {}
        for site, plain in asked.items():
            port = self._ports.get(site)
            if port is not None and site not in self._outages and self._refused.get(port, 0.0) < time.monotonic():
                sent[site] = port, key_of(self._secret, site), framed(plain)
        answers: dict[int, Any] = {}
        errors: list[Exception] = []
        for site, answer in (links().ask(sent, end) if sent else {}).items():
            if isinstance(answer, UnreachableError):
                self._refused[sent[site][0]] = time.monotonic() + REFUSED
            elif isinstance(answer, TimeoutError):
                answers[site] = self._fail(site, f"no answer within {self._deadline:g} s.")
            elif isinstance(answer, LostError):
                # What it did is unknown; Ray knows whether it is there, and starts it again.
                self._ports[site] = None
            elif "error" in answer:
                answers[site] = None
                errors.append(raised(answer["error"]))
            else:
                answers[site] = self._told(site, answer)
        return answers, errors

    def _told(self, site: int, answer: Mapping[str, Any]) -> list[Any]:
        """Note what a site says of itself, and give its answers; on the wire tuples are lists."""
        self.incarnations[site] = answer["incarnation"]
        if answer["overfull"] is not None:
            self.overfull[site] = answer["overfull"]
        return [tuple(part) if isinstance(part, list) else part for part in answer["answers"]]

    @contextmanager
    def turn(self, record: Record | None = None) -> Iterator[Turn]:
        """Take a turn; it lasts three deadlines at most, and ends within seconds if its producer dies."""
        self._check()
        (fence, left, newest), over, done = self._take(record), threading.Event(), False
        last = time.monotonic() + LONGEST * self._deadline

        def renew() -> None:
            while not over.wait(RENEW) and time.monotonic() < last:
                self._turns.renew.remote(fence)

        def keep(record: Record, newest: int | None) -> None:
            if not imported().get(self._turns.hold.remote(fence, newest, *record), timeout=self._deadline):
                raise SupersededError(f"turn {fence} is over: another has begun")

        threading.Thread(target=renew, name="turn", daemon=True).start()
        try:
            turn = Turn(fence, left, newest, keep)
            yield turn
            newest, done = turn.newest, True
        finally:
            over.set()
            # If this message is lost, the turn ends by itself.
            self._turns.give.remote(fence, newest, done)

    def status(self) -> list[dict[str, Any] | Failed]:
        """Ask each site how it is (`Site.status`), and on which ``node`` of the cluster."""
        return self._status(self._deadline)

    def kill(self, site: int) -> None:
        """Kill a site: what it has not saved is gone. Ray starts it again."""
        imported().kill(self._actors[site], no_restart=False)

    def restart(self, site: int) -> None:
        """Wait until Ray has started a site again.

        Raises
        ------
        TimeoutError
            If that takes longer than five minutes.
        """
        self._outages.pop(site, None)
        answer = self._gather("status", {site: ()}, START)[site]
        if isinstance(answer, Failed):
            raise TimeoutError(answer.reason)

    def close(self) -> None:
        """Let the sites write their last checkpoints, and end them, for all who use them."""
        try:
            self._ask("close", patience=START)
        finally:
            self._end()

    def _end(self) -> None:
        for actor in [*self._actors, self._turns]:
            imported().kill(actor)
        self._actors = []

    def _check(self) -> None:
        if not self._actors:
            raise RuntimeError("the sites are closed")

    def _status(self, patience: float) -> list[dict[str, Any] | Failed]:
        answers = self._ask("status", patience=patience)
        for site, answer in enumerate(answers):
            if not isinstance(answer, Failed):
                self.incarnations.setdefault(site, answer["incarnation"])
                self._ports[site] = answer["port"]
        return answers

    def _ask(self, method: str, *, patience: float) -> list[Any]:
        return list(self._gather(method, dict.fromkeys(range(len(self)), ()), patience).values())

    def _gather(self, method: str, asked: Mapping[int, tuple[Any, ...]], patience: float) -> dict[int, Any]:
        """Ask sites; the answers are in the order of the questions. Sites that are restarting are asked again."""
        self._check()
        ray = imported()
        end = time.monotonic() + patience
        answers: dict[int, Any] = {site: self._outage(site) for site in asked}
        again = {site: "" for site, outage in answers.items() if outage is None}
        pending: dict[Any, int] = {}
        errors = []
        dead: set[int] = set()
        while again or pending:
            pending |= {getattr(self._actors[site], method).remote(*asked[site]): site for site in again}
            again = {}
            left = end - time.monotonic()
            ready, _ = ray.wait(list(pending), num_returns=len(pending), timeout=max(0, min(LOOK, left)))
            for answer in ready:
                site = pending.pop(answer)
                try:
                    answers[site] = ray.get(answer)
                except ray.exceptions.RayTaskError as error:
                    # Ray's error only looks like the site's; this one is the site's.
                    errors.append(error.cause)
                except ray.exceptions.RayError as error:
                    if isinstance(error, ray.exceptions.ActorDiedError):
                        _gone(f"site {site}", error, said_before=site in dead)
                        dead.add(site)
                    again[site] = str(error).partition("\n")[0]
            if time.monotonic() >= end:
                late = dict.fromkeys(pending.values(), "")
                for site, reason in (again | late).items():
                    answers[site] = self._fail(site, f"no answer within {patience:g} s. {reason}".strip())
                break
            if again:
                time.sleep(min(PAUSE, max(0, end - time.monotonic())))
        if errors:
            raise errors[0]
        return answers

    def _fail(self, site: int, reason: str) -> Failed:
        failed = Failed(site, reason, time.time())
        self._outages[site] = failed, self._actors[site].status.remote()
        metric("lately_failures").inc(1, tags={"site": str(site)})
        return failed

    def _outage(self, site: int) -> Failed | None:
        """Tell whether a failed site is still out: whether its probe is unanswered. Sends a new one if that failed."""
        failed, question = self._outages.get(site, (None, None))
        if failed is None:
            return None
        ray = imported()
        for patience in (0, PAUSE):
            if not ray.wait([question], timeout=patience)[0]:
                return failed
            try:
                ray.get(question)
            except (ray.exceptions.RayTaskError, ray.exceptions.ActorDiedError):
                # The site is there, and reports an error; or it is gone, as whoever asks it will be told.
                break
            except ray.exceptions.RayError:
                question = self._actors[site].status.remote()
                self._outages[site] = failed, question
            else:
                break
        else:
            return failed
        self._outages.pop(site, None)
        return None

    def _take(self, record: Record | None) -> tuple[int, Record | None, int | None]:
        ray = imported()
        patience = (LONGEST + 1) * self._deadline
        end = time.monotonic() + patience
        dead = False
        while True:
            try:
                took: tuple[int, Record | None, int | None] = ray.get(
                    self._turns.take.remote(*(record or ())), timeout=patience
                )
            except ray.exceptions.RayError as error:
                if isinstance(error, ray.exceptions.ActorDiedError):
                    _gone("the actor of turns", error, said_before=dead)
                    dead = True
                if time.monotonic() >= end:
                    raise TimeoutError(f"no turn within {patience:g} s: {error}") from None
                time.sleep(PAUSE)
            else:
                if took[0]:
                    return took
                end = time.monotonic() + patience


def _gone(who: str, error: Exception, *, said_before: bool) -> None:
    """Raise an error if an actor is dead for good. One that has just died might be said to be, so it is asked twice."""
    if said_before:
        reason = str(error).strip().rpartition("\n")[2]
        raise RuntimeError(f"{who} is gone, and with it the filter: it was closed, or its driver has ended ({reason})")


def _names(name: str | None, part: str = "") -> dict[str, Any]:
    return {} if name is None else {"name": name + part, "namespace": NAMESPACE, "lifetime": "detached"}


def _named(ray: Any, name: str) -> Any:
    try:
        return ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        return None
