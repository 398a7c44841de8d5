"""A process that runs step by step: an instruction, or up to the next system call."""

import contextlib
import ctypes
import mmap
import os
import signal
from functools import partial

TRACEME, STEP, SYSCALL = 0, 9, 24  # of ptrace
LIBC = ctypes.CDLL(None, use_errno=True)


def ptrace(request, process):
    if LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(process), None, None) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextlib.contextmanager
def on_one_processor():
    """Keep this process, and the children that start meanwhile, on one processor: a step takes a third of the time."""
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {LIBC.sched_getcpu()})
    try:
        yield
    finally:
        os.sched_setaffinity(0, processors)


def start(work):
    """Start a child that stands before `work`."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            ptrace(TRACEME, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            work()
            status = 0
        finally:
            os._exit(status)
    assert os.WIFSTOPPED(os.waitpid(child, 0)[1])
    return child


def step(child, request):
    """Let the child take a step; return whether it stands, and has not ended."""
    ptrace(request, child)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSTOPPED(status) or status == 0
    return os.WIFSTOPPED(status)


def stop_at(call, work):
    """Start a child and stop it at its system call of this number; return it, or None if it has ended before."""
    with on_one_processor():
        child = start(work)
        return child if all(step(child, SYSCALL) for _ in range(call)) else None


def states(path, work, size):
    """Run `work` in a child, and return the first bytes of the file after every instruction that changes them."""
    with on_one_processor(), path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        child = start(work)
        all_states, status = [mapped[:size]], None
        # A hundred thousand times.
        one_step = partial(LIBC.ptrace, ctypes.c_long(STEP), ctypes.c_long(child), None, None)
        while one_step() == 0 and os.WIFSTOPPED(status := os.waitpid(child, 0)[1]):
            if mapped[:size] != all_states[-1]:
                all_states.append(mapped[:size])
        assert status == 0
    return all_states
