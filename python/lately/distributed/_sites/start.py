"""Starts sites for given contents: in this process, on Ray, or by a function of the caller."""

import json
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from lately.distributed._sites.errors import CheckpointError
from lately.distributed._sites.interface import PROTOCOL, Failed, Orderer, Sites
from lately.distributed._sites.local import LocalSites
from lately.distributed._sites.ray_sites import RaySites
from lately.distributed._sites.site import Contents, Maker, Site
from lately.distributed._sites.store import Hold, Store, store

# Where sites run: in this process, as actors of Ray, or as a function starts them from their makers.
Where: TypeAlias = Literal["local", "ray"] | Callable[[Sequence[Maker]], Sites]
# The part that all manifests share; the other entries are the filter's.
VERSION: Mapping[str, Any] = {"format": "lately sites", "protocol": PROTOCOL}
# Seconds that a site on Ray has to answer.
DEADLINE = 10.0
# Files beside the checkpoints: what filter they are of, and whose processes write them.
MANIFEST, HELD = "sites.json", "sites.lock"
# Seconds within which the actors of a driver that has ended end too.
ENDING = 10.0


def make_site(
    contents: Callable[[], Contents],
    name: str,
    manifest: str,
    checkpoint: str | os.PathLike[str] | None,
    interval: float,
    owner: str,
) -> Site:
    """Make a site where this is called, from its checkpoint if there is one."""
    kept, hold = None if checkpoint is None else store(checkpoint), None
    if kept is not None:
        if kept.read(MANIFEST) is None:
            raise CheckpointError(f"{name} finds no {MANIFEST} in {checkpoint}: mount the folder, or restore it")
        try:
            hold = kept.hold(HELD, owner, new=False)
        except BlockingIOError:
            raise CheckpointError(f"{name} finds its checkpoints in {checkpoint} held by another program") from None
    try:
        return Site(contents(), name=name, manifest=manifest, store=kept, interval=interval, hold=hold)
    except BaseException:
        # The error may outlive this call, and with it all that was made here.
        if hold is not None:
            hold.release()
        raise


def start(
    contents: Sequence[Callable[[], Contents]],
    manifest: Mapping[str, Any],
    sites: Where,
    *,
    checkpoint: str | os.PathLike[str] | None,
    interval: float,
    deadline: float | None,
    name: str | None,
    orderer: Callable[[Sites], Orderer] | None,
    actors: int | None = None,
) -> Sites:
    """Start a site for each of the contents, in this process, on Ray or by a function that is passed their makers.

    `manifest` describes the filter, in JSON's types. It is stored beside the checkpoints, and a producer that connects
    compares it. The `orderer` is started too. The other parameters are those of `SlicedFilter`.
    """
    if not interval >= 0:
        raise ValueError(f"interval must be at least 0 s, got {interval}")
    if deadline is not None and not deadline > 0:
        raise ValueError(f"deadline must be above 0 s, got {deadline}")
    if callable(sites):
        for given, what in ((deadline, "deadline"), (name if checkpoint is None else None, "name"), (actors, "actors")):
            if given is not None:
                raise ValueError(
                    f"{what} is for sites='ray': what the function gives has its own, as in "
                    f"RaySites(makers, {what}={given!r}) or RaySites.connect"
                )
    elif sites not in ("local", "ray"):
        raise ValueError(f"sites must be 'local', 'ray' or a function that starts them, got {sites!r}")
    prefix, versioned = name or "site", {**VERSION, **manifest}
    text, owner = json.dumps(versioned), secrets.token_hex(8)
    makers = [
        partial(make_site, content, f"{prefix}-{i}-of-{len(contents)}", text, checkpoint, interval, owner)
        for i, content in enumerate(contents)
    ]
    hold = None
    if checkpoint is not None:
        kept = store(checkpoint)
        _agree(kept, {"name": prefix, **versioned})
        hold = _hold(kept, owner, f"the sites named {prefix!r} in {checkpoint}", 0 if sites == "local" else ENDING)
    try:
        started = _started(makers, manifest, sites, deadline=deadline, name=name, actors=actors)
    finally:
        # From now on the sites hold it.
        if hold is not None:
            hold.release()
    if orderer is not None:
        started.put_in_order(orderer)
    return started


def _started(
    makers: Sequence[Maker],
    manifest: Mapping[str, Any],
    sites: Where,
    *,
    deadline: float | None,
    name: str | None,
    actors: int | None,
) -> Sites:
    if callable(sites):
        made = sites(makers)
        if len(made) != len(makers):
            # They may be existing sites of another filter.
            raise ValueError(f"this filter has {len(makers)} sites, but {len(made)} were given")
        compare(manifest_of(made), manifest, "the sites that were given hold")
        return made
    if sites == "local":
        if actors is not None:
            raise ValueError("actors is for sites='ray': sites of this process need none")
        return LocalSites(makers)
    return RaySites(makers, actors=actors, name=name, deadline=DEADLINE if deadline is None else deadline)


def manifest_of(sites: Sites) -> dict[str, Any]:
    """Return the manifest of the sites; raise `TimeoutError` if none answers, `ValueError` for another version."""
    answers = [status for status in sites.status() if not isinstance(status, Failed)]
    if not answers:
        raise TimeoutError("no site answers, so the filter that they hold is unknown")
    manifest: dict[str, Any] = json.loads(answers[0]["manifest"] or "{}")
    version = {name: manifest.pop(name, None) for name in VERSION}
    if version != VERSION:
        raise ValueError(f"the sites have {version}, and this process has {VERSION}")
    return manifest


def compare(there: Mapping[str, Any], here: Mapping[str, Any], what: str) -> None:
    """Reject another filter; the error names all differences."""
    differ = [key for key in {**here, **there} if there.get(key) != here.get(key)]
    other = [f"{key} is {there.get(key)!r} there and {here.get(key)!r} here" for key in differ]
    if other:
        raise ValueError(f"{what} another filter: {', '.join(other)}")


def _agree(kept: Store, manifest: Mapping[str, Any]) -> None:
    """Compare the manifest with the one beside the checkpoints, or store it there."""
    data = kept.read(MANIFEST)
    if data is None:
        kept.write(MANIFEST, json.dumps(manifest, indent=2).encode())
        return
    try:
        there = json.loads(data)
    except ValueError as error:
        raise ValueError(f"{MANIFEST} beside the checkpoints is damaged: {error}") from None
    compare(there, manifest, f"{MANIFEST} beside the checkpoints is of")


def _hold(kept: Store, owner: str, what: str, patience: float) -> Hold | None:
    """Hold checkpoints for a new owner; raise `ValueError` if processes of another one still hold them."""
    end = time.monotonic() + patience
    while True:
        try:
            return kept.hold(HELD, owner, new=True)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise ValueError(
                    f"checkpoint: another program, or an open filter of this one, has {what}: connect to its sites, "
                    "close it, or take another folder"
                ) from None
            time.sleep(0.1)
