"""One operation as ``verdict`` wants to see it: what was watched from outside, and what its endpoints say. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from endpoints.core.communicator import FRAME_OVERHEAD_UD
from endpoints.core.pacing import wire_ns
from experiments import books
from experiments.fidelity.samples import Watched
from experiments.fidelity.verdict import MEMORY_PER_BYTE, Observed
from experiments.results import Run
from experiments.scenario import Scenario
from topo.counters import Counters
from topo.fabric import interface


class TimedReport(Protocol):
    """What ``endpoints.io.commands.RankResult`` says."""

    @property
    def rank(self) -> int: ...
    @property
    def late_ns(self) -> int: ...
    @property
    def ring_dropped(self) -> int: ...


def observe(
    scenario: Scenario,
    run: Run,
    hosts: Sequence[str],
    reports: Sequence[TimedReport],
    watched: Watched,
    counted: Mapping[str, Counters],
    datapath: Literal["kernel", "user"],
    *,
    quiet: bool,
    disturbed: Mapping[str, str],
) -> Observed:
    """``counted`` is what every interface counted during the operation, by name; ``quiet`` if then nothing moved.

    ``hosts`` has the host of each rank that took part, ``disturbed`` those that a fault has stopped, and which.
    """
    ports = {name for name in counted if name not in {interface(host, 0) for host in scenario.fabric.host}}
    elapsed_ns = run.seconds * 1e9 if run.seconds else float(watched.after.at_ns - watched.before.at_ns)
    switching = watched.switching
    chunk_ns = wire_ns(scenario.mtu + FRAME_OVERHEAD_UD, scenario.link_rate_bps)
    dropped = {name: c.rx_dropped + c.tx_dropped for name, c in counted.items()}
    rings = {hosts[report.rank]: report.ring_dropped for report in reports if report.ring_dropped}
    sockets = {port: drops for port, drops in watched.socket_drops.items() if port in ports}
    everywhere = Counter[str](dropped) + Counter(rings) + Counter(sockets) + Counter(watched.queue_drops)
    everywhere += Counter(watched.injected_drops)
    dead = books.ends_of_dead_links(scenario.fabric, watched.down)
    gaps = list(books.link_gaps(scenario.fabric, counted, dead)) if quiet else []
    missing = books.unexplained(run.packets, everywhere, dead, replaced=watched.replaced)
    return Observed(
        rate_bps=scenario.link_rate_bps,
        datapath=datapath,
        seconds=run.seconds,
        limit_ratio=run.limit_ratio,
        burst_s=scenario.send_batch * chunk_ns / 1e9,
        oversleep_s=scenario.protocol.scheduling_ns / 1e9,
        unread_bytes={port: waiting for port, waiting in watched.waiting.items() if port in ports},
        switch_busy=None if switching is None else (switching.ran_ns + switching.waited_ns) / elapsed_ns,
        host_waited=watched.host_waited_ns / elapsed_ns,
        late_s={hosts[report.rank]: report.late_ns / 1e9 for report in reports},
        disturbed={host: fault for host, fault in disturbed.items() if host in hosts},
        socket_drops=sockets,
        ring_drops=rings,
        kernel_drops={name: count for name, count in dropped.items() if count > 0 and name not in dead},
        down_drops={name: dropped[name] for name in sorted(dead & dropped.keys())},
        queue_fill={name: fill for name, fill in watched.queue_fill.items() if name in counted},
        send_buffer_fill=_send_buffer_fill(watched) if datapath == "user" else 0.0,
        unaccounted=(*gaps, *missing),
        replaced=watched.replaced,
    )


def _send_buffer_fill(watched: Watched) -> float:
    """How full the buffer was of the one socket by which the userspace datapath sends: its frames wait in queues."""
    return watched.queued_bytes * MEMORY_PER_BYTE / watched.send_buffer if watched.send_buffer else 0.0
