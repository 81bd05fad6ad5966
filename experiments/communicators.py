"""From a fabric to the communicator that its hosts are handed: addresses of ranks and of multicast trees."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address

from endpoints.core.communicator import Communicator, GroupAddress, Peer
from topo.fabric import Fabric, Host

FIRST_GROUP = int(IPv4Address("239.192.0.1"))
"""Groups of the trees count from here: the organization-local scope of RFC 2365, section 6.2."""


def group_address(tree: int) -> GroupAddress:
    """Address of tree ``tree``; its MAC holds the lower 23 bits of the address (RFC 1112, 6.4)."""
    ip = FIRST_GROUP + tree
    return GroupAddress(ip, bytes((0x01, 0x00, 0x5E)) + (ip & 0x7FFFFF).to_bytes(3, "big"))


def group_names(trees: int) -> tuple[str, ...]:
    """The groups' addresses in dotted form."""
    return tuple(str(IPv4Address(group_address(tree).ip)) for tree in range(trees))


def communicator(
    fabric: Fabric,
    *,
    mtu: int,
    rate_bps: int,
    trees: int = 1,
    op_bits: int = 8,
    hosts: Sequence[Host] | None = None,
) -> Communicator:
    """A communicator with ``trees`` multicast trees, on links of ``rate_bps`` bit/s.

    ``hosts`` has the host of each rank; left out, all hosts of the fabric take part in its own order.
    """
    peers = tuple(
        Peer(rank, host.name, bytes.fromhex(host.mac.replace(":", "")), int(IPv4Address(host.ip)))
        for rank, host in enumerate(fabric.hosts if hosts is None else hosts)
    )
    return Communicator(peers, tuple(group_address(tree) for tree in range(trees)), mtu, rate_bps, op_bits)
