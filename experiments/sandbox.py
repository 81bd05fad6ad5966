"""The sandbox: a run happens in network, process and mount namespaces of its own, and ends with them.

Three processes share the work::

    parent   stays on the host: passes a stop signal on, waits, tells what happened
    init     process 1 of the new process namespace: makes the rest of the sandbox, collects orphans, waits
    main     does the run; Mininet, Open vSwitch, the controller and all hosts are its descendants

When ``init`` ends, in whatever way, the kernel kills every process of its namespace, and the last one takes all
interfaces, bridges and mounts along. ``init`` itself is killed by the kernel when the parent dies. So nothing of a run
can stay behind, and nothing of it is ever in the host's own namespaces.

A stop signal reaches ``main`` as :class:`Interrupted`, for an orderly end. A second one, or one that is not obeyed in
:data:`GRACE_S`, kills; but what is interactive takes every Ctrl-C for itself. ``init`` leads a session of its own, so
that Ctrl-C reaches the parent alone, not every daemon.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from experiments import signals
from experiments.errors import EXIT_INTERRUPTED, EnvironmentMissing, complain, exit_code_of
from experiments.terminal import kept

GRACE_S = 30.0
ONE_PRESS_S = 0.5
"""Ctrl-C reaches us up to three times, from the terminal, make and sudo: what comes within this time is one."""

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x8, 0x1000, 0x4000, 0x40000
PR_SET_PDEATHSIG = 1
CONTROL_GROUPS = "/sys/fs/cgroup"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1

_libc = ctypes.CDLL(None, use_errno=True)


def run_in_sandbox(
    main: Callable[[], int],
    rundir: Path,
    started: Callable[[int], None] = lambda _pid: None,
    *,
    interactive: bool = False,
) -> int:
    """Run ``main`` in a sandbox and return its exit code, once nothing of the sandbox is left.

    ``rundir`` exists; inside it is an empty file system of its own. ``started`` is told the pid of the sandbox's first
    process. If ``interactive``, ``main`` gets every SIGINT, and may go on. Returns 1 if a process of the sandbox was
    killed, 3 (or raises EnvironmentMissing) if it cannot be made, 130 after a stop signal. Must be called from the main
    thread, as the only one.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with signals.held(), kept() as terminal:
        pid, parent_holds = _fork_into_new_pids(main, rundir)
        stop = _Stop(pid, interactive=interactive)
        try:
            started(pid)
            status = stop.wait()
        finally:
            os.close(parent_holds)
        if not os.WIFSIGNALED(status):
            return os.WEXITSTATUS(status)
        terminal.broken = True
        if stop.pressed:
            complain("killed; nothing of the run is left")
            return EXIT_INTERRUPTED
        complain(f"the run was killed by {signal.Signals(os.WTERMSIG(status)).name}; nothing of it is left")
        return 1


class _Stop:
    """The parent's way with stop signals: pass the first on, kill at the next; pass on every Ctrl-C if interactive."""

    def __init__(self, pid: int, *, interactive: bool) -> None:
        self._pid = pid
        self._interactive = interactive
        self._first: float | None = None

    @property
    def pressed(self) -> bool:
        """Whether a stop signal has come."""
        return self._first is not None

    def wait(self) -> int:
        """Wait for the sandbox with stop signals let through; its exit status."""
        before = {number: signal.getsignal(number) for number in signals.STOP}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # as under nohup
                signal.signal(number, self._stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.STOP)
        try:
            self._until_ended()
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, signals.STOP)
            for number, handler in before.items():
                signal.signal(number, handler)
        return os.waitpid(self._pid, 0)[1]

    def _until_ended(self) -> None:
        handle = os.pidfd_open(self._pid)
        try:
            while not select.select([handle], [], [], 1.0)[0]:
                if self._first is not None and time.monotonic() - self._first > GRACE_S:
                    os.kill(self._pid, signal.SIGKILL)
        finally:
            os.close(handle)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._interactive and number == signal.SIGINT:
            os.kill(self._pid, number)
        elif self._first is None:
            self._first = now
            os.kill(self._pid, number)
        elif now - self._first > ONE_PRESS_S:
            os.kill(self._pid, signal.SIGKILL)


def _fork_into_new_pids(main: Callable[[], int], rundir: Path) -> tuple[int, int]:
    """Fork ``init``; the namespace is only for children, and only for this one.

    Returns its pid and a descriptor to hold on to: its closing tells ``init`` that we died before it could ask for our
    death.
    """
    ours = os.open("/proc/self/ns/pid", os.O_RDONLY)
    parent_lives, parent_holds = os.pipe()
    try:
        _call("unshare", CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            os.close(parent_holds)
            _init(main, rundir, parent_lives)
        _call("setns", ours, CLONE_NEWPID)
    finally:
        os.close(ours)
        os.close(parent_lives)
    return pid, parent_holds


def _init(main: Callable[[], int], rundir: Path, parent_lives: int) -> NoReturn:
    """Process 1. Returns nowhere, since the stack above is the parent's."""
    code = 1
    try:
        _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if not select.select([parent_lives], [], [], 0)[0]:
            os.setsid()
            code = exit_code_of(lambda: _supervise(main, rundir))
    finally:
        os._exit(code)


def _make_rest(rundir: Path) -> None:
    """The other namespaces, and in them what programs look at to see where they are."""
    _call("unshare", CLONE_NEWNET | CLONE_NEWNS)
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    with _kept_in_sight(CONTROL_GROUPS):
        _mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    _mount("tmpfs", str(rundir), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    if Path("/dev/shm").is_dir():  # noqa: S108  # ours alone from here on, so that shared memory ends with us
        _mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")  # noqa: S108
    for scope in ("all", "default"):  # no neighbour discovery on the fabric's ports
        knob = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if knob.exists():
            knob.write_text("1")
    _loopback_up()


def _supervise(main: Callable[[], int], rundir: Path) -> int:
    """Finish the sandbox, fork ``main``, collect every orphan meanwhile, and return its exit code."""
    _make_rest(rundir)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signals.raise_once()
            code = exit_code_of(lambda: _interruptible(main))
            sys.stdout.flush()
        finally:
            os._exit(code)
    status = _tend(pid)
    if os.WIFSIGNALED(status):
        complain(f"the run's main process was killed by {signal.Signals(os.WTERMSIG(status)).name}")
        return 1
    return os.WEXITSTATUS(status)


def _tend(pid: int) -> int:
    """Pass stop signals on to ``pid`` and collect every process that ends, until ``pid`` does; its status.

    Stop signals are blocked and stay so: they are waited for together with the ends of processes. A handler would miss
    one that comes after its last chance to run and before a blocking call, until something else ends that call.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    while True:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:  # one signal may stand for many ends
            if ended[0] == pid:
                return ended[1]
        number = signal.sigwait({*signals.STOP, signal.SIGCHLD})
        if number != signal.SIGCHLD:
            os.kill(pid, number)


def _interruptible(main: Callable[[], int]) -> int:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals.STOP)
    return main()


@contextmanager
def _kept_in_sight(folder: str) -> Iterator[None]:
    """What is mounted below ``folder`` now is so again behind it, whatever is mounted over it inside."""
    if not Path(folder).is_dir():
        yield
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield
        if Path(folder).is_dir():
            _mount(f"/proc/self/fd/{descriptor}", folder, None, MS_BIND | MS_REC)
    finally:
        os.close(descriptor)


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack_from("16sh", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    _call("mount", texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])


def _call(name: str, *args: object) -> None:
    """A system call by its C name."""
    if getattr(_libc, name)(*args) != 0:
        problem = os.strerror(ctypes.get_errno())
        raise EnvironmentMissing(
            f"system call {name}: {problem}; the sandbox needs root and namespaces (in a container: privileged)"
        )
