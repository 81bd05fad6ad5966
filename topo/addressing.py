"""Names, datapath ids and addresses: one systematic scheme for every topology.

A person who reads a capture or a switch's log must be able to tell where a packet is, so everything is derived from
the place of a node in the fabric:

=========  =====================================  =========================================================
value      form                                   example
=========  =====================================  =========================================================
host       ``h{index + 1}``                       ``h1`` has index 0
MAC        ``02:00:00:00:`` + index + 1, 16 bit   ``02:00:00:00:00:01`` is ``h1`` (locally administered)
dpid       layer << 32 | pod << 16 | index        ``0000000200030001``: layer 2 (aggregation), pod 3, index 1
=========  =====================================  =========================================================

The layer of a dpid is the switch's tier + 1, so that it is 1 at the edge and a dpid is never 0; a switch that belongs
to no pod has pod 0.
"""

from __future__ import annotations

from topo.fabric import FabricError, Host, Switch

MAX_HOSTS = 0xFFFE
"""Most hosts that the 16 bits of a MAC can tell apart."""


def make_host(index: int, ip: str) -> Host:
    """Host number ``index`` in depth-first order, with its systematic name and MAC."""
    if not 0 <= index < MAX_HOSTS:
        raise FabricError(f"host {index}: a fabric has at most {MAX_HOSTS} hosts")
    number = index + 1
    return Host(name=f"h{number}", index=index, mac=f"02:00:00:00:{number >> 8:02x}:{number & 0xFF:02x}", ip=ip)


def make_switch(name: str, tier: int, role: str, index: int, pod: int | None = None) -> Switch:
    """The switch number ``index`` of its tier and pod, with its systematic datapath id."""
    return Switch(name=name, dpid=(tier + 1) << 32 | (pod or 0) << 16 | index, tier=tier, role=role, pod=pod)


def require_range(topology: str, parameter: str, value: int, low: int, high: int) -> None:
    """Refuse a parameter outside ``low .. high`` (both allowed) with a line that says what would be right."""
    if not low <= value <= high:
        raise FabricError(f"{topology}: {parameter}={value} is out of range, it must be from {low} to {high}")
