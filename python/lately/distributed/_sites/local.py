"""Sites in this process, for tests and for trying out failures."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from lately.distributed._sites.interface import Failed, Message, Orderer, Sites
from lately.distributed._sites.site import Maker, Site


class LocalSites:
    """Sites that are objects of this process.

    Parameters
    ----------
    makers : sequence of callable
        Each makes one site.

    Notes
    -----
    Nothing fails here by itself. A site that is killed stays dead until `restart`.
    """

    connected = False

    def __init__(self, makers: Sequence[Maker]) -> None:
        self._makers, self._sites = list(makers), list[Site]()
        try:
            self._sites += (maker() for maker in self._makers)
        except BaseException:
            for site in self._sites:
                site.close(save=False)
            raise
        self.incarnations = {i: site.incarnation for i, site in enumerate(self._sites)}
        self.overfull: dict[int, str] = {}
        self._down: dict[int, Failed] = {}
        self._lock = threading.Lock()
        self._orderer: Orderer | None = None

    def __len__(self) -> int:
        return len(self._makers)

    def call(self, messages: Sequence[Message]) -> list[Any]:
        """Send messages; see `Sites.call`."""
        answers: list[Any] = []
        errors: list[Exception] = []
        for message in messages:
            if message.site in self._down:
                answers.append(self._down[message.site])
                continue
            site = self._sites[message.site]
            try:
                answers.append(site.receive(message))
            except Exception as error:
                errors.append(error)
            self.incarnations[message.site] = site.incarnation
            if (warning := site.overfull) is not None:
                self.overfull[message.site] = warning
        if errors:
            raise errors[0]
        return answers

    def put_in_order(self, make: Callable[[Sites], Orderer]) -> None:
        """Make the orderer, unless there is one."""
        if self._orderer is None:
            self._orderer = make(self)

    def order(self, *request: Any) -> Any:
        """Call the orderer; other threads wait meanwhile."""
        assert self._orderer is not None, "the filter of these sites has no orderer"
        with self._lock:
            return self._orderer.do(*request)

    def status(self) -> list[dict[str, Any] | Failed]:
        """Return the state of each site."""
        return [self._down.get(i) or site.status() for i, site in enumerate(self._sites)]

    def kill(self, site: int) -> None:
        """Kill a site: what it has not saved is gone."""
        self._sites[site].close(save=False)
        self._down[site] = Failed(site, "killed", time.time())

    def restart(self, site: int) -> None:
        """Start a site again, from its checkpoint if it has one."""
        self._sites[site].close(save=False)
        self._sites[site] = self._makers[site]()
        self._sites[site].record_restart()
        self._down.pop(site, None)

    def __reduce__(self) -> NoReturn:
        raise TypeError("sites of this process cannot be pickled: other processes would not share their cells")

    def close(self) -> None:
        """Let the sites write their last checkpoints."""
        for i, site in enumerate(self._sites):
            if i not in self._down:
                site.close()
