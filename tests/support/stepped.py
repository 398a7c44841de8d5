"""A process that runs step by step: an instruction, or up to the next system call."""

import ctypes
import mmap
import os
import signal

TRACEME, STEP, SYSCALL = 0, 9, 24  # of ptrace
LIBC = ctypes.CDLL(None, use_errno=True)


def ptrace(request, process):
    if LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(process), None, None) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


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


def states(path, work):
    """Run `work` in a child, and return the contents of the file after every instruction that changes it."""
    child = start(work)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        all_states = [mapped[:]]
        while step(child, STEP):
            if mapped[:] != all_states[-1]:
                all_states.append(mapped[:])
    return all_states
