"""What passed through an interface or a switch port, as the kernel and Open vSwitch report it.

Both reports are taken at the moment of the call. The statistics column of the OVS database is not: it is refreshed
every few seconds only, so it must not be used to account for a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Counters:
    """Totals since the interface was made. Bytes are those of whole Ethernet frames, without the checksum.

    On a veth, ``tx`` counts what has left the shaping queues; what a queue dropped is in the qdisc's own statistics.
    """

    rx_packets: int = 0
    rx_bytes: int = 0
    rx_errors: int = 0
    rx_dropped: int = 0
    tx_packets: int = 0
    tx_bytes: int = 0
    tx_errors: int = 0
    tx_dropped: int = 0

    def __sub__(self, earlier: Counters) -> Counters:
        """What was added since ``earlier``."""
        return Counters(*(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)))


def parse_proc_net_dev(text: str) -> dict[str, Counters]:
    """Counters by interface from ``/proc/net/dev``: 16 columns, received first (kernel: net/core/net-procfs.c)."""
    table: dict[str, Counters] = {}
    for line in text.splitlines()[2:]:
        name, _, values = line.partition(":")
        column = [int(value) for value in values.split()]
        table[name.strip()] = Counters(
            rx_bytes=column[0],
            rx_packets=column[1],
            rx_errors=column[2],
            rx_dropped=column[3],
            tx_bytes=column[8],
            tx_packets=column[9],
            tx_errors=column[10],
            tx_dropped=column[11],
        )
    return table


_PORT = re.compile(r"^ {2}port \d+: (?P<name>\S+).*(?P<text>(?:\n {4}.*)*)", re.MULTILINE)
_LINES = {
    "packets": re.compile(r"(?P<way>[RT]X) packets:(?P<packets>\S+) errors:(?P<errors>\S+) dropped:(?P<dropped>\S+)"),
    "bytes": re.compile(r"(?P<way>[RT]X) bytes:(?P<bytes>\S+)"),
}


def parse_datapath(text: str) -> dict[str, Counters]:
    """Counters by interface from ``ovs-appctl dpctl/show -s``; a value that the port does not keep (``?``) is 0."""
    return {match["name"]: Counters(**dict(_port_values(match["text"]))) for match in _PORT.finditer(text)}


def _port_values(text: str) -> Iterator[tuple[str, int]]:
    for pattern in _LINES.values():
        for match in pattern.finditer(text):
            for what, value in match.groupdict().items():
                if what != "way":
                    yield f"{match['way'].lower()}_{what}", int(value) if value.isdigit() else 0
