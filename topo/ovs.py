"""A private Open vSwitch: its own database and daemons, in a run directory of its own.

An Open vSwitch of the user's, with bridges of their own, is never met: every program of OVS finds its daemons by the
environment variables of :attr:`PrivateOvs.env`. Both daemons are our children and stay in the foreground, so that they
end with the process namespace that they run in, whatever happens to us.

In the userspace datapath all ports send through one socket, whose send buffer is the default of the moment when
``ovs-vswitchd`` starts. Shaped links need a large one (``net.core.wmem_default``), which is raised before.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Self

from topo.counters import Counters, parse_datapath

START_TIMEOUT_S = 20.0
COMMAND_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
CTL_TIMEOUT_S = 30
"""After which OVS's own programs give up, whoever calls them: without ovs-vswitchd, ovs-vsctl would wait for ever."""

BACKOFF_MS = 1000
"""The longest that a bridge waits before it looks for its controller again; Mininet's choice, too."""

RESTARTS = 8
"""How often one run starts ovs-vswitchd anew."""

PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl", "ovs-appctl")

OPEN_FILES = 65_536
"""Descriptors that vswitchd may open: one or two for each port, and the usual limit is 1,024."""


class OvsError(RuntimeError):
    """Open vSwitch is missing, did not start, or refused a command."""


class PrivateOvs:
    """One ovsdb-server and one ovs-vswitchd for all bridges; a context manager around :meth:`start` and :meth:`stop`.

    ``rundir`` is created and holds the database, the sockets and the logs. ``datapath`` is ``"netdev"`` (userspace)
    or ``"system"`` (kernel), the ``datapath_type`` of the bridges.
    """

    def __init__(self, rundir: Path, datapath: str = "netdev") -> None:
        if datapath not in ("netdev", "system"):
            raise OvsError(f"datapath {datapath!r}: Open vSwitch has 'netdev' (userspace) and 'system' (kernel)")
        self.rundir = rundir
        self.datapath = datapath
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._supervised = False
        self.restarts = 0
        """How often ovs-vswitchd has been started anew."""

    @property
    def env(self) -> dict[str, str]:
        """Variables by which ovs-vsctl, ovs-ofctl and the others find this instance."""
        places = dict.fromkeys(("OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"), str(self.rundir))
        return {**places, "OVS_CTL_TIMEOUT": str(CTL_TIMEOUT_S)}

    @property
    def pids(self) -> dict[str, int]:
        """Process id by daemon, ``ovsdb-server`` and ``ovs-vswitchd``."""
        return {name: daemon.pid for name, daemon in self._daemons.items()}

    @property
    def switching(self) -> bool:
        """Whether ovs-vswitchd runs. Where it does not, ovs-vsctl waits for ever for it to follow a change."""
        return self._alive("ovs-vswitchd")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Create the database and start both daemons; returns when they answer. OvsError if they do not."""
        missing = [program for program in PROGRAMS if shutil.which(program) is None]
        if missing:
            raise OvsError(f"{', '.join(missing)} not found: install the package openvswitch-switch")
        if self._daemons:
            raise OvsError(f"Open vSwitch in {self.rundir} is running already")
        self.rundir.mkdir(mode=0o755, parents=True, exist_ok=True)
        database, socket = self.rundir / "conf.db", self.rundir / "db.sock"
        database.unlink(missing_ok=True)
        self.run("ovsdb-tool", "create", str(database))
        try:
            self._spawn("ovsdb-server", str(database), f"--remote=punix:{socket}")
            self._wait(socket.is_socket, "ovsdb-server", "its socket")
            # Statistics in the database would be refreshed for every port every 5 s; ours are read from the datapath.
            self.run("ovs-vsctl", "--no-wait", "init", "--", "set", "Open_vSwitch", ".",
                     "other_config:stats-update-interval=3600000")  # fmt: skip
            self._spawn("ovs-vswitchd", f"unix:{socket}")
            self._wait(self._answers, "ovs-vswitchd", "its answer")
        except OvsError:
            self.stop()
            raise

    def supervise(self) -> None:
        """From now on :meth:`check` starts ovs-vswitchd anew when it has ended.

        Its own ``--monitor`` would not after a SIGKILL, only after what a bug raises. The database has all bridges and
        ports; rules are the controller's to bring back.
        """
        self._supervised = True

    def check(self) -> None:
        """OvsError if one of the daemons has ended, unless it is ovs-vswitchd and supervised."""
        for name, daemon in list(self._daemons.items()):
            if daemon.poll() is not None:
                if name == "ovs-vswitchd" and self._supervised and self.restarts < RESTARTS:
                    self.restarts += 1
                    self._spawn(name, f"unix:{self.rundir / 'db.sock'}")
                    continue
                raise OvsError(f"{name} ended unasked with status {daemon.returncode}: {self._tail(name)}")

    def stop(self) -> None:
        """Take down bridges and daemons; harmless when nothing runs."""
        if self._alive("ovs-vswitchd"):
            self._call("ovs-appctl", "--timeout=5", "--target=ovs-vswitchd", "exit", "--cleanup")
            self._end("ovs-vswitchd", STOP_TIMEOUT_S)
        for name in list(self._daemons):
            self._daemons[name].terminate()
            self._end(name, STOP_TIMEOUT_S)
        self._daemons.clear()

    def run(self, *command: str, text: str = "") -> str:
        """Standard output of one of OVS's programs, fed ``text``; OvsError with its complaint if it fails."""
        result = self._call(*command, text=text)
        if result.returncode != 0:
            complaint = result.stderr.strip() or f"exit status {result.returncode}"
            raise OvsError(f"{command[0]} {_abridged(command[1:])}: {complaint}")
        return result.stdout

    def dump_flows(self, bridge: str) -> str:
        """The bridge's flows as ``ovs-ofctl -O OpenFlow13`` prints them."""
        return self.run("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", bridge)

    def dump_groups(self, bridge: str) -> str:
        """The bridge's groups as ``ovs-ofctl -O OpenFlow13`` prints them."""
        return self.run("ovs-ofctl", "-O", "OpenFlow13", "dump-groups", bridge)

    def connect(self, bridge: str, port: int) -> None:
        """Have the bridge look for its controller on 127.0.0.1:``port``."""
        self.run(
            *("ovs-vsctl", "--", "--id=@it", "create", "Controller", f'target="tcp:127.0.0.1:{port}"'),
            *(f"max_backoff={BACKOFF_MS}", "--", "set", "bridge", bridge, "controller=@it"),
        )

    def leave_queues(self, ports: Iterable[str]) -> None:
        """Never touch the qdiscs of these ports: ovs-vswitchd deletes, when it starts, what it has not made itself."""
        lines = (("--", "set", "port", port, "qos=@it") for port in ports)
        self.run("ovs-vsctl", "--", "--id=@it", "create", "QoS", "type=linux-noop", *chain.from_iterable(lines))

    def disconnect(self, bridge: str) -> None:
        """Cut the bridge off from its controller; in secure mode it goes on with the rules that it has."""
        self.run("ovs-vsctl", "del-controller", bridge)

    def forget_rules(self, bridge: str) -> None:
        """Delete every flow and every group of the bridge, at once (a bundle: ONF extension 230)."""
        self.run("ovs-ofctl", "-O", "OpenFlow13", "bundle", bridge, "-", text="flow delete\ngroup delete\n")

    def port_counters(self) -> dict[tuple[str, int], Counters]:
        """Counters of the ports of all bridges at this moment, by (bridge, port number)."""
        text = self.run(
            "ovs-appctl", "--target=ovs-vswitchd", "dpctl/show", "-s", f"{self.datapath}@ovs-{self.datapath}"
        )
        table: dict[tuple[str, int], Counters] = {}
        for name, counters in parse_datapath(text).items():
            bridge, separator, port = name.rpartition("-eth")
            if separator:
                table[bridge, int(port)] = counters
        return table

    def warnings(self) -> list[str]:
        """Lines of both logs at level WARN or above."""
        logs = [self.rundir / f"{name}.log" for name in ("ovsdb-server", "ovs-vswitchd")]
        lines = [line for log in logs if log.exists() for line in log.read_text(errors="replace").splitlines()]
        return [line for line in lines if re.search(r"\|(WARN|ERR|EMER)\|", line)]

    def _call(self, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                command,
                input=text,
                capture_output=True,
                text=True,
                check=False,
                env=_environment(self.env),
                timeout=COMMAND_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            raise OvsError(f"{command[0]} {_abridged(command[1:])}: no answer in {COMMAND_TIMEOUT_S:g} s") from None

    def _spawn(self, name: str, *arguments: str) -> None:
        with (self.rundir / f"{name}.out").open("wb") as output:
            daemon = subprocess.Popen(
                [name, *arguments, "--pidfile", f"--log-file={self.rundir / name}.log", "-vconsole:off"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(ALLOCATION | self.env),
            )
        hard = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (_at_most(OPEN_FILES, hard), hard))
        self._daemons[name] = daemon

    def _answers(self) -> bool:
        return self._call("ovs-appctl", "--timeout=5", "--target=ovs-vswitchd", "version").returncode == 0

    def _alive(self, name: str) -> bool:
        return name in self._daemons and self._daemons[name].poll() is None

    def _wait(self, condition: Callable[[], bool], name: str, what: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not condition():
            if not self._alive(name):
                raise OvsError(f"{name} ended at once with status {self._daemons[name].returncode}: {self._tail(name)}")
            if time.monotonic() > deadline:
                raise OvsError(f"{name} started but {what} did not come in {START_TIMEOUT_S:g} s: {self._tail(name)}")
            time.sleep(0.005)

    def _tail(self, name: str) -> str:
        """The last words of a daemon."""
        files = [self.rundir / f"{name}.{kind}" for kind in ("out", "log")]
        lines = [line for file in files if file.exists() for line in file.read_text(errors="replace").splitlines()]
        return " / ".join(lines[-3:]) or f"see {self.rundir}"

    def _end(self, name: str, timeout_s: float) -> None:
        daemon = self._daemons.pop(name)
        try:
            daemon.wait(timeout_s)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


ALLOCATION = {"MALLOC_TOP_PAD_": str(64 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
"""The userspace datapath allocates and frees a buffer for every packet. With the C library's defaults its heap shrank
and grew a thousand times a second under load, and every page came back through a page fault (mallopt(3))."""


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, **own}


def _at_most(wanted: int, hard: int) -> int:
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _abridged(arguments: tuple[str, ...], length: int = 200) -> str:
    text = " ".join(arguments)
    return text if len(text) <= length else f"{text[:length]}…"
