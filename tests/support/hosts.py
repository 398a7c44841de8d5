"""Hosts in one process: sites move between them as on Ray, and hosts die when a test says so."""

import itertools
import threading
import time
from contextlib import contextmanager

from lately.distributed._sites.host import Host
from lately.distributed._sites.interface import Turn
from lately.distributed._sites.layout import Layout
from lately.distributed._sites.routing import GONE, Out, Routed
from lately.distributed._sites.site import MovedError


class Ledger:
    """Layouts in memory."""

    def __init__(self):
        self._layouts, self._lock = {}, threading.Lock()

    def latest(self):
        with self._lock:
            return self._layouts[max(self._layouts)] if self._layouts else None

    def put(self, layout):
        with self._lock:
            return self._layouts.setdefault(layout.version, layout) is layout


class LocalHosts(Routed):
    """Sites that hosts of this process hold; each host has one thread for what is no message, as an actor has."""

    connected = False
    _patience = 60.0

    def __init__(self, makers, hosts):
        self._makers, self._ledger = list(makers), Ledger()
        self._layout = Layout.first(len(self._makers), hosts)
        self._ledger.put(self._layout)
        self._hosts = {host: Host(host, self._makers, self._ledger) for host in self._layout.hosts}
        self.incarnations, self.overfull = {}, {}
        self.down, self.before = set(), {}
        self._turn, self._fences = threading.Lock(), itertools.count(1)
        self.status()

    def another(self):
        """Give what a producer elsewhere has: hosts and the ledger, and the layout as it was."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.incarnations, other.connected = dict(self.incarnations), True
        return other

    def _ask_hosts(self, method, asked, end):
        answers = {}
        for host, sites in asked.items():
            if host not in self._ledger.latest().hosts:
                answers[host] = GONE
            elif host in self.down:
                answers[host] = Out("killed", time.time())
            elif method == "call":
                answers[host] = self._hosts[host].call(list(sites.items()))
            else:
                answers[host] = self._hosts[host].status(list(sites))
        return answers

    def at(self, step, *told):
        """Let a test do something before a step of a move, once."""
        self.before.pop(step, lambda *_: None)(*told)

    def _hand(self, site, source, to, version):
        self.at("give", site, source, to)
        data = self._alive(source).give(site)
        self.at("take", site, source, to)
        self._alive(to).take(site, version, data)
        self.at("put", site, source, to)

    def _alive(self, host):
        if host in self.down:
            raise MovedError("it is to be tried again")
        return self._hosts[host]

    def _keep(self, site, source):
        self._hosts[source].wait(site, 0.0)

    def _settle(self, site, source, to):
        self.at("settle", site, source, to)
        self._hosts[source].forget(site)
        self._hosts[to].status([site])

    def resize(self, hosts):
        self._look(self._layout)
        if (more := hosts - len(self._layout.hosts)) > 0:
            assert self._ledger.put(self._layout.grown(more))
            self._look(self._layout)
            for host in self._layout.hosts[-more:]:
                self._hosts[host] = Host(host, self._makers, self._ledger)
        layout = self._layout
        self._spread(layout.hosts[:hosts])
        if len(layout.hosts) > hosts:
            self._look(self._layout)
            assert self._ledger.put(self._layout.without(layout.hosts[hosts:]))

    def crash(self, host, *, restart=True):
        """End a host as a crash does."""
        for site in list(self._hosts[host]._sites.values()):
            site.close(save=False)
        self.down.add(host)
        if restart:
            self.restarted(host)

    def restarted(self, host):
        self._hosts[host] = Host(host, self._makers, self._ledger, again=True)
        self.down.discard(host)

    @contextmanager
    def turn(self, record=None):
        with self._turn:
            yield Turn(next(self._fences), None, None, lambda *_: None)

    def status(self):
        answers = self._ask("status", dict.fromkeys(range(len(self))))
        return [answers[site] for site in range(len(self))]

    def kill(self, site):
        self.crash(self._ledger.latest().places[site])

    def close(self):
        for host in self._ledger.latest().hosts:
            self._hosts[host].close()
