"""A pretended host: namespaces in which a test can say exactly what was there before and after.

Programs are started inside; the test itself stays outside, sees their pids as the machine does, and may kill any.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.processes import Process

REPOSITORY = Path(__file__).parents[2]
KNOB = "net/core/somaxconn"
"""A sysctl that each network namespace has for itself, in place of the global ones that real runs raise."""
BOUND_S = 30.0
NEW_NAMESPACES = (
    "unshare",
    "--net",
    "--pid",
    "--mount",
    "--propagation=slave",
    "--mount-proc",
    "--fork",
    "--kill-child",
)
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}

SNAPSHOT = f"""
import glob, json, os, socket
pids = [p for p in os.listdir("/proc") if p.isdecimal() and int(p) != os.getpid()]
print(json.dumps({{
    "processes": sorted(open(f"/proc/{{pid}}/comm").read() for pid in pids),
    "links": sorted(name for _, name in socket.if_nameindex()),
    "network namespaces": len(set(os.readlink(f"/proc/{{pid}}/ns/net") for pid in pids)),
    "mounts": open("/proc/1/mounts").read(),
    "shared memory": os.listdir("/dev/shm"),
    "run": sorted(glob.glob("/run/**", recursive=True)),
    "sysctl": int(open("/proc/sys/{KNOB}").read()),
}}))
"""

PROGRAM = """
import os, subprocess, sys, time
from pathlib import Path
from experiments import signals
from experiments.errors import exit_code_of
from experiments.ledger import Ledger
from experiments.sandbox import run_in_sandbox

def main():
    subprocess.run(["ip", "link", "add", "h1-eth0", "type", "veth", "peer", "name", "e00-eth1"], check=True)
    (rundir / "switches.sock").write_text("")
    (Path("/dev/shm") / "nic").write_text("")
    subprocess.Popen(["setsid", "sleep", "1000"])
    subprocess.run(["sh", "-c", "sleep 1000 & :"])
    print("ready", flush=True)
    try:
        WORK
    finally:
        print("tidied", flush=True)
    return 0

def tidy_on_go():
    print("working", flush=True)
    try:
        time.sleep(1000)
    finally:
        print("tidying", flush=True)
        while not os.path.exists("/run/go"):
            time.sleep(0.01)

def one_press_takes(seconds):
    import experiments.sandbox
    experiments.sandbox.ONE_PRESS_S = seconds

def grace_is(seconds):
    import experiments.sandbox
    experiments.sandbox.GRACE_S = seconds

def in_groups():
    from experiments.host_groups import HostGroups
    HostGroups(rundir.name).place("h1", [os.getpid()], [subprocess.Popen(["sleep", "1000"]).pid])
    print("placed", flush=True)
    time.sleep(1000)

def wait_for_go():
    import experiments.sandbox
    call = experiments.sandbox._call
    def late(name, *arguments):
        if name == "prctl":
            print("ready", flush=True)
            while not os.path.exists("/run/go"):
                time.sleep(0.01)
        call(name, *arguments)
    experiments.sandbox._call = late

def run():
    global rundir
    with signals.raising(), Ledger().open_run() as live:
        live.raise_sysctls({"net.core.somaxconn": 65000})
        rundir = live.rundir
        BEFORE
        code = run_in_sandbox(main, rundir, live.record_child)
        subprocess.run(["true"], check=True)  # we can still have children
        return code

sys.exit(exit_code_of(run))
"""


def until(condition: Callable[[], Any], what: str) -> Any:
    """What ``condition`` returns once it is true; fails after a bound that is far beyond what is needed."""
    deadline = time.monotonic() + BOUND_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {BOUND_S:.0f} s: {what}"
        time.sleep(0.01)
    return value


class PretendedHost:
    """Network, process and mount namespaces with a ``/run`` of their own; ``pid`` is its first process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def inside(self, *command: str) -> list[str]:
        """``command``, to be executed inside. The program that enters is replaced, but for the fork that pids need."""
        return ["nsenter", f"--target={self.pid}", "--net", "--mount", "--pid", "--", *command]

    def ask(self, *command: str) -> str:
        """What a program inside says."""
        return subprocess.run(self.inside(*command), check=True, capture_output=True, text=True).stdout

    def python(self, program: str) -> str:
        """What a Python program inside says."""
        run = [sys.executable, "-c", program]
        return subprocess.run(
            self.inside(*run), check=True, capture_output=True, text=True, cwd=REPOSITORY, env=ENVIRONMENT
        ).stdout

    def snapshot(self) -> dict[str, Any]:
        """All that a run could leave behind."""
        return dict(json.loads(self.python(SNAPSHOT)))

    def start(self, work: str = "time.sleep(1000)", before: str = "pass") -> Running:
        """Start a run whose main process does ``work``; its parent does ``before`` first."""
        program = PROGRAM.replace("WORK", work).replace("BEFORE", before)
        return Running(
            subprocess.Popen(
                self.inside(sys.executable, "-c", program),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=REPOSITORY,
                env=ENVIRONMENT,
            )
        )


class Running:
    """A run inside, by its three processes as the machine numbers them."""

    def __init__(self, enterer: subprocess.Popen[str]) -> None:
        self.enterer = enterer
        assert enterer.stdout is not None
        self._out = enterer.stdout

    def line(self) -> str:
        """The next line that it says."""
        return self._out.readline()

    def ready(self) -> Running:
        """Wait until its main process works."""
        assert self.line() == "ready\n", self.enterer.communicate()[1]
        return self

    @property
    def parent(self) -> int:
        """The process that the user started."""
        return int(until(lambda: children(self.enterer.pid), "the parent has started")[0])

    @property
    def name(self) -> str:
        """What the run calls itself in the ledger: its parent's pid as the pretended host numbers it."""
        status = Path(f"/proc/{self.parent}/status").read_text()
        return next(line.split()[-1] for line in status.splitlines() if line.startswith("NSpid:"))

    @property
    def init(self) -> int:
        """The first process of the sandbox."""
        return int(until(lambda: children(self.parent), "init has started")[0])

    @property
    def main(self) -> int:
        """The process that does the work: the first that init started."""
        return int(until(lambda: children(self.init), "main has started")[0])

    def ended(self) -> tuple[int, str, str]:
        """Exit code, what was said on standard output after ``ready``, and on standard error."""
        assert self.enterer.stderr is not None
        out, err = self._out.read(), self.enterer.stderr.read()  # to their ends: every process that had them is gone
        return self.enterer.wait(BOUND_S), out, err


def children(pid: int) -> Sequence[int]:
    """Pids of the children of a process, oldest first."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return sorted((int(child) for child in found), key=lambda child: getattr(Process.of(child), "started", 0))


@contextmanager
def pretended_host() -> Iterator[PretendedHost]:
    """Make one, and take it down with all that is in it."""
    setting_up = (
        "mount --make-rshared / && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm && "
        "ip link set lo up && echo up && cat"  # mounts are shared, as on a machine that systemd has set up
    )
    keeper = subprocess.Popen(
        [*NEW_NAMESPACES, "sh", "-c", setting_up],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == "up\n"
        yield PretendedHost(int(children(keeper.pid)[0]))
    finally:
        keeper.kill()
        keeper.communicate()
