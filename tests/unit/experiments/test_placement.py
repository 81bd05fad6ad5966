"""Placement: which host runs which rank, and that everything that names a rank means that host."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Address

from experiments.communicators import communicator
from experiments.injection import impairments
from experiments.placement import hosts_by_rank
from experiments.scenario import Scenario
from topo.registry import parse_topology

FABRIC = parse_topology("fattree,k=4")
RANDOM = {"placement": "random", "seed": 7}


def names(seed: int) -> list[str]:
    return [host.name for host in hosts_by_rank(FABRIC, "random", seed)]


def test_contiguous_ranks_are_the_hosts_in_their_order() -> None:
    assert hosts_by_rank(FABRIC, "contiguous", 7) == FABRIC.hosts


def test_a_random_order_holds_every_host_once_and_repeats_with_its_seed() -> None:
    assert sorted(names(7)) == sorted(FABRIC.host)
    assert names(7) == names(7) != names(8)


def test_the_order_of_a_seed_is_the_same_on_every_machine() -> None:
    assert " ".join(names(7)) == "h3 h1 h16 h15 h4 h5 h7 h14 h10 h12 h8 h2 h11 h13 h9 h6"


def test_every_host_is_as_often_at_the_first_rank_as_any_other() -> None:
    often = Counter(names(seed)[0] for seed in range(3200))
    assert set(often) == set(FABRIC.host)
    assert all(140 <= count <= 260 for count in often.values()), "200 each, four standard deviations of 13.7 allowed"


def test_the_communicator_knows_each_rank_by_the_address_of_its_host() -> None:
    scenario = Scenario.of(RANDOM)
    comm = communicator(scenario.fabric, mtu=4096, rate_bps=1_000_000, hosts=scenario.by_rank)
    assert [peer.rank for peer in comm.peers] == list(range(16))
    for peer, host in zip(comm.peers, scenario.by_rank, strict=True):
        assert (peer.name, str(IPv4Address(peer.ip)), peer.mac.hex(":")) == (host.name, host.ip, host.mac)


def test_a_rank_in_a_fault_or_a_capture_is_resolved_to_the_host_that_runs_it() -> None:
    faults = [{"kind": "drop", "hosts": "2", "senders": "h3", "probability": 0.5}]
    scenario = Scenario.of({**RANDOM, "impairments": faults, "capture": "2"})
    by_rank = [host.name for host in scenario.by_rank]
    assert scenario.impairments[0].hosts == scenario.capture == (by_rank[2],)
    [spec] = impairments(scenario)
    assert (spec.hosts, spec.senders) == ({2}, {by_rank.index("h3")}), "endpoints are told ranks"


def test_a_resolved_scenario_given_back_means_the_same_hosts() -> None:
    first = Scenario.of({**RANDOM, "capture": "0,1,2"})
    assert Scenario.of(first.model_dump()) == first
