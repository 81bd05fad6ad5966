"""From a fabric to a communicator: every host a rank, every tree a group with the MAC that IP multicast gives it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from scapy.layers.l2 import getmacbyip

from experiments.communicators import communicator, group_address, group_names
from topo.registry import parse_topology

ORGANIZATION_LOCAL = IPv4Network("239.192.0.0/14")
"""RFC 2365, section 6.2."""


@pytest.mark.parametrize("topology", ["fattree,k=4", "leafspine,leaves=3,spines=2,hosts=5", "single,hosts=3"])
def test_every_host_is_a_rank_with_its_own_addresses(topology: str) -> None:
    fabric = parse_topology(topology)
    comm = communicator(fabric, mtu=1024, rate_bps=50_000_000)
    assert comm.size == len(fabric.hosts)
    for rank, peer in enumerate(comm.peers):
        host = fabric.host[peer.name]
        assert peer.rank == rank
        assert str(IPv4Address(peer.ip)) == host.ip
        assert peer.mac.hex(":") == host.mac


def test_ranks_are_in_the_order_of_the_hosts_given_and_only_those_take_part() -> None:
    fabric = parse_topology("single,hosts=4")
    assert [peer.name for peer in communicator(fabric, mtu=1024, rate_bps=1).peers] == ["h1", "h2", "h3", "h4"]
    chosen = (fabric.host["h3"], fabric.host["h1"])
    comm = communicator(fabric, mtu=1024, rate_bps=1, hosts=chosen)
    assert [(peer.rank, peer.name, str(IPv4Address(peer.ip))) for peer in comm.peers] == [
        (0, "h3", fabric.host["h3"].ip),
        (1, "h1", fabric.host["h1"].ip),
    ]


def test_the_link_and_the_numbering_are_handed_on() -> None:
    comm = communicator(parse_topology("single,hosts=2"), mtu=256, rate_bps=10_000_000, trees=3, op_bits=12)
    assert (comm.mtu, comm.rate_bps, len(comm.groups), comm.chunk_bits) == (256, 10_000_000, 3, 20)


@pytest.mark.parametrize("tree", [0, 1, 19, 254, 255, 0x3FFFE])
def test_a_trees_address_is_the_organizations_own_and_its_mac_follows_from_it(tree: int) -> None:
    group = group_address(tree)
    assert IPv4Address(group.ip) in ORGANIZATION_LOCAL
    assert group.mac.hex(":") == getmacbyip(str(IPv4Address(group.ip))), "as Scapy has it from RFC 1112"


def test_trees_have_different_addresses_and_the_names_are_the_same_ones_in_words() -> None:
    comm = communicator(parse_topology("single,hosts=2"), mtu=256, rate_bps=1, trees=20)
    assert len({group.ip for group in comm.groups}) == len({group.mac for group in comm.groups}) == 20
    assert group_names(20) == tuple(str(IPv4Address(group.ip)) for group in comm.groups)
    assert group_names(2) == ("239.192.0.1", "239.192.0.2")
