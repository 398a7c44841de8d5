"""Sliced filters over the actors of Ray give the verdicts that they give in one process."""

import numpy as np
import pytest

from lately.distributed import SlicedFilter
from support.sliced import timers

KINDS = {
    "horizontal": {"kind": "horizontal", "slices": 2},
    "vertical": {"kind": "vertical", "slices": 2},
}


@pytest.mark.parametrize("name", KINDS)
def test_on_ray_as_in_one_process(ray_cluster, name, tmp_path):
    rng = np.random.default_rng(8)
    batches = [(rng.integers(0, 500, 400), 100.0 * i + np.sort(rng.uniform(0, 100, 400))) for i in range(6)]
    shape, kept = KINDS[name], {"checkpoint": tmp_path, "interval": 0, "deadline": 60}
    with (
        SlicedFilter(**shape, filter=timers()) as local,
        SlicedFilter(**shape, filter=timers(), sites="ray", **kept) as sliced,
    ):
        for number, (keys, times) in enumerate(batches, 1):
            refresh = number % 2 == 0
            expected = local.duplicated(keys, at=times, refresh=refresh)
            assert (sliced.duplicated(keys, at=times, refresh=refresh) == expected).all()
            if name == "vertical" and number == 3:
                # It is started again with all that it has answered; the next message waits for it.
                sliced.sites.kill(1)
            assert (sliced.duplicated(keys, at=times, refresh=refresh, number=number) == expected).all()
            queried = np.arange(700)
            assert (sliced.query(queried, at=times[-1]) == local.query(queried, at=times[-1])).all()
        assert (sliced.failures, sliced.nbytes) == (0, local.nbytes)
        assert (sliced.fill == local.fill).all()
        check_travelled(ray_cluster, sliced, at=times[-1])


def check_travelled(ray, sliced, at):
    """Handles sent to tasks are separate producers, and each key is new to one of them."""
    keys = np.arange(1000, 1300)
    task = ray.remote(lambda handle: (handle.producer, handle.duplicated(keys, at=at, refresh=False)))
    answers = ray.get([task.remote(sliced) for _ in range(2)])
    assert len({producer for producer, _ in answers} | {sliced.producer}) == 3
    new = sum(~seen for _, seen in answers)
    # The filter is small, and takes some for seen.
    assert new.max() == 1
    assert new.mean() > 0.9
    assert sliced.query(keys, at=at).all()
