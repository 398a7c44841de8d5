"""The Ray task that is running here: what names a batch so that it has the same name when the task is run again."""

import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass

# Most attempts whose calls are counted at once. One process runs fewer: they are the threads of its actor.
ATTEMPTS = 4096


@dataclass(frozen=True)
class Attempt:
    """A run of a task, or of a method of an actor: a name that is the same in each run, and which run it is, from 0."""

    task: str
    number: int

    def next_call(self, number: int | None = None) -> int:
        """Count a call that writes, from 1 on: the next, or one with a number of its own."""
        with _lock:
            number = max(_calls.pop(self, 0) + 1, 1) if number is None else number
            _calls[self] = number
            while len(_calls) > ATTEMPTS:
                _calls.popitem(last=False)
        return number


# Of the process, not of a handle: a task may have several handles, and a handle in its code outlives it.
_calls: OrderedDict[Attempt, int] = OrderedDict()
_lock = threading.Lock()


def running() -> Attempt | None:
    """Give the attempt that this thread runs; None outside of Ray, in a driver, and as far as is known.

    A thread that a task has started has a task of its own, by chance, which Ray does not run again.
    """
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    worker = ray.get_runtime_context().worker
    # A driver has no task, and Ray would warn it.
    if worker.mode != ray.WORKER_MODE:
        return None
    # Ray's context has the task, but not which run of it this is.
    return Attempt(worker.current_task_id.hex(), worker.core_worker.get_current_task_attempt_number())
