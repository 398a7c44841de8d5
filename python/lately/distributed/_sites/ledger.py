"""Layouts of a filter on Ray, which outlast its actors.

They lie in the key-value store of the cluster (`ray.experimental.internal_kv`), beside the names of actors: what an
actor remembers is gone when it dies, and an actor that begins again has to know which sites are its own.
"""

import json
from typing import Any

from lately.distributed._ray import imported
from lately.distributed._sites.layout import Layout


class RayLedger:
    """Layouts of one filter.

    Parameters
    ----------
    filter : str
        Name that no other has.
    """

    def __init__(self, filter: str) -> None:
        self._prefix = f"lately/{filter}/"
        self._seen = 0

    def latest(self) -> Layout | None:
        """Give the one of the highest version; None once the filter has ended."""
        seen = self._seen or max(map(_version, _store()._internal_kv_list(self._prefix)), default=0)
        found = self._read(seen)
        # None is removed while the filter lives, or it could be put down again.
        while found is not None and (later := self._read(seen + 1)) is not None:
            seen, found = seen + 1, later
        self._seen = seen
        return found

    def put(self, layout: Layout) -> bool:
        """Put one down, or tell that there is one of this version."""
        there: bool = _store()._internal_kv_put(self._key(layout.version), json.dumps(layout.plain()), overwrite=False)
        return not there

    def end(self) -> None:
        """Forget all."""
        _store()._internal_kv_del(self._prefix, del_by_prefix=True)

    def _key(self, version: int) -> str:
        return f"{self._prefix}{version}"

    def _read(self, version: int) -> Layout | None:
        data = _store()._internal_kv_get(self._key(version))
        return None if data is None else Layout.of(json.loads(data))


def _store() -> Any:
    return imported("ray.experimental.internal_kv")


def _version(key: bytes) -> int:
    return int(key.rpartition(b"/")[2])
