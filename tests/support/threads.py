"""Threads that work at the same time."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def together(*jobs: Callable[[], Any]) -> list[Any]:
    """Run each job in a thread of its own, all from one moment on; return their results, or raise the error of one."""
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        start.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [task.result() for task in [pool.submit(run, job) for job in jobs]]
