"""Scenarios: resolved, repeatable, and refused in one line where they cannot run as asked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import UserError
from experiments.scenario import Scenario
from experiments.targets import capture_target, host_name

FABRIC = Scenario().fabric


def test_the_defaults_are_the_main_job() -> None:
    scenario = Scenario.of({})
    assert scenario.topology == "fattree,k=4"
    assert scenario.ranks == 16
    assert scenario.rate_bps == scenario.shaped_bps == 50_000_000
    assert (scenario.size_bytes, scenario.mtu, scenario.iterations, scenario.seed) == (1 << 20, 4096, 1, 1)
    assert scenario.algorithms == ("mcast_allgather",)
    assert scenario.chains == 16
    assert scenario.name == "fattree-k4-mcast_allgather"


def test_what_is_left_out_of_a_topology_is_spelt_out() -> None:
    assert Scenario.of({"topology": "leafspine,hosts=2"}).topology == "leafspine,leaves=4,spines=2,hosts=2"


def test_values_are_read_with_their_units() -> None:
    scenario = Scenario.of(
        {"rate_bps": "100M", "size_bytes": "64KiB", "loss": "1%", "delay_ns": "2ms", "algorithms": "mcast_broadcast"}
    )
    assert (scenario.rate_bps, scenario.size_bytes, scenario.loss) == (100_000_000, 65536, 0.01)
    assert (scenario.delay_ns, scenario.algorithms) == (2_000_000, ("mcast_broadcast",))


def test_links_scale_and_both_rates_are_kept() -> None:
    scenario = Scenario.of({"rate_bps": "56G", "scale": 1000, "link_delay_ns": "1us"})
    assert (scenario.rate_bps, scenario.shaped_bps) == (56_000_000_000, 56_000_000)
    assert (scenario.link_delay_ns, scenario.shaped_delay_ns) == (1_000, 1_000_000)


FULL = {
    "topology": "leafspine,leaves=2,spines=2,hosts=4",
    "rate_bps": "56G",
    "scale": 1000,
    "algorithms": ["mcast_broadcast", "mcast_allgather"],
    "loss": "1%",
    "chains": 3,
    "capture": ["2", "s1-l0"],
    "impairments": [
        {"kind": "drop", "hosts": ["3"], "senders": "h1,h2", "psns": [1, 5]},
        {"kind": "delay", "direction": "tx", "probability": "5%", "time_ns": "5ms"},
    ],
}


@pytest.mark.parametrize("values", [{}, FULL])
def test_the_resolved_scenario_given_back_is_the_same_scenario(values: dict[str, Any]) -> None:
    scenario = Scenario.of(values)
    assert Scenario.of(json.loads(json.dumps(scenario.model_dump(mode="json")))) == scenario


def test_hosts_and_links_are_named_as_the_fabric_names_them() -> None:
    scenario = Scenario.of(FULL)
    assert scenario.capture == ("h3", "l0-s1")
    assert scenario.impairments[0].hosts == ("h4",)
    assert scenario.impairments[0].senders == ("h1", "h2")


def test_the_protocol_is_handed_its_knobs() -> None:
    given = {"chains": 2, "cutoff": "deadline", "send_batch": 128, "fetch_early": False}
    protocol = Scenario.of(given).protocol
    found = (protocol.chains, protocol.cutoff.value, protocol.send_batch, protocol.fetch_early)
    assert found == (2, "deadline", 128, False)


REFUSED = [
    ({"topology": "fattree,k=3"}, "k=3 is odd"),
    ({"topology": "torus"}, "known are fattree"),
    ({"rate_bps": "0"}, "must be above 0"),
    ({"rate_bps": 0}, "rate_bps 0"),
    ({"rate_bps": 50}, "write the unit"),
    ({"rate_bps": "56G"}, "add a scale"),
    ({"rate_bps": "56G", "scale": 1000, "shaped_bps": 55_000_000}, "= 56000000"),
    ({"scale": 0.5}, "scale 0.5"),
    ({"mtu": 1500}, "256, 512, 1024, 2048, 4096"),
    ({"size_bytes": "4GiB", "mtu": 256}, "268435456 chunks"),
    ({"size_bytes": -1}, "size_bytes -1"),
    ({"size_bytes": 1001, "algorithms": "ring_reduce_scatter"}, "a multiple of 4, like 1000"),
    ({"size_bytes": 3, "algorithms": "mcast_allgather,ring_reduce_scatter"}, "a multiple of 4, like 4"),
    ({"algorithms": "quantum"}, "known are"),
    ({"algorithms": []}, "algorithms"),
    ({"algorithms": "mcast_allgather,mcast_allgather"}, "twice"),
    ({"chains": 17}, "at most 16"),
    ({"offload": "dpu"}, "'none' or 'nic'"),
    ({"workers": 2}, "use offload nic"),
    ({"nic_memory_bytes": "1MiB"}, "use offload nic"),
    ({"nic_cpus": "0"}, "use offload nic"),
    ({"nic_limit": "0.5"}, "use offload nic"),
    ({"nic_cpus": "3-1", "offload": "nic"}, "nic_cpus: CPUs '3-1': write numbers and ranges, like 0-2,5"),
    ({"nic_limit": "0.001", "offload": "nic"}, "nic_limit '0.001': must be at least 0.01"),
    ({"workers": 8, "offload": "nic"}, "workers 8"),
    ({"workers": 3, "trees": 2, "offload": "nic"}, "use trees 3"),
    ({"nic_memory_bytes": "1MiB", "offload": "nic"}, "staging 5242880"),
    ({"iterations": 0}, "iterations 0"),
    ({"loss": 1}, "write a percentage"),
    ({"loss": "0.01"}, "write a percentage"),
    ({"loss": 1.5}, "loss 1.5"),
    ({"delay_ns": "5"}, "unit"),
    ({"cutoff": "never"}, "'inactivity' or 'deadline'"),
    ({"capture": "h17"}, "h1 to h16"),
    ({"capture": "e00-c0"}, "e00-a00"),
    ({"impairments": [{"kind": "drop"}]}, "probability or a list of PSNs"),
    ({"impairments": [{"kind": "drop", "chance": 1}]}, "known are kind"),
    ({"impairments": [{"kind": "drop", "psns": [1], "hosts": ["h99"]}]}, "h1 to h16"),
    ({"bandwidth": 5}, "known are name"),
    ({"name": "../x"}, "name"),
]


@pytest.mark.parametrize(("values", "reason"), REFUSED, ids=[str(values) for values, _ in REFUSED])
def test_what_cannot_run_is_refused_in_one_line_with_its_cure(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError) as caught:
        Scenario.of(values)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert any(field.removesuffix("s") in str(caught.value) for field in values)


@pytest.mark.parametrize(
    ("topology", "workers", "trees"),
    [("fattree,k=4", 1, 1), ("fattree,k=4", 2, 4), ("fattree,k=4", 3, 12), ("fattree,k=6", 4, 20), ("single", 3, 3)],
)
def test_workers_have_trees_over_all_cores_where_nothing_is_said_of_trees(
    topology: str, workers: int, trees: int
) -> None:
    values = {"topology": topology, "offload": "nic", "nic_memory_bytes": "32MiB"}
    assert Scenario.of({**values, "workers": workers}).trees == trees
    assert Scenario.of({**values, "workers": str(workers), "trees": 7}).trees == 7


def test_the_numbering_limit_is_exact() -> None:
    per_rank = (1 << 24) // 16 * 4096
    assert Scenario.of({"size_bytes": per_rank}).size_bytes == per_rank
    with pytest.raises(UserError, match="op_bits"):
        Scenario.of({"size_bytes": per_rank + 1})
    with pytest.raises(UserError, match="23 bits"):
        Scenario.of({"size_bytes": per_rank, "op_bits": 9})
    assert Scenario.of({"size_bytes": per_rank * 16, "algorithms": "mcast_broadcast"}).ranks == 16


def test_a_reduction_needs_memory_for_what_it_gives_and_as_much_for_what_it_has_yet_to_add() -> None:
    moves, adds = (
        Scenario.of({"size_bytes": "1MiB", "algorithms": name}) for name in ("ring_allgather", "ring_reduce_scatter")
    )
    assert adds.memory_bytes - moves.memory_bytes == 16 * (3 * 16 + 1 - (2 + 16)) * 2**20


def test_memory_is_checked_against_what_is_free() -> None:
    scenario = Scenario.of({"size_bytes": "64MiB"})
    assert scenario.memory_bytes > 16 * 17 * (64 << 20)
    scenario.check_memory(scenario.memory_bytes)
    with pytest.raises(UserError, match="smaller"):
        scenario.check_memory(scenario.memory_bytes - 1)
    with pytest.raises(UserError, match=r"64 MiB.* need 18\.1 GiB of memory and 16\.0 GiB are free"):
        scenario.check_memory(16 << 30)


@given(st.integers(min_value=0, max_value=15))
def test_a_rank_is_the_host_that_runs_it(rank: int) -> None:
    by_rank = FABRIC.hosts[::-1]
    assert host_name(FABRIC, by_rank, str(rank), "") == by_rank[rank].name
    assert host_name(FABRIC, by_rank, f"h{rank + 1}", "") == f"h{rank + 1}"


def test_every_link_can_be_captured_in_either_spelling() -> None:
    for link in FABRIC.links:
        assert capture_target(FABRIC, (), f"{link.a}-{link.b}") == capture_target(FABRIC, (), f"{link.b}-{link.a}")


@pytest.mark.parametrize("given", ["0-1,4", [0, 1, 4], (0, 1, 4)])
def test_cpus_of_nics_are_a_list_or_text(given) -> None:
    assert Scenario.of({"offload": "nic", "nic_cpus": given}).nic_cpus == (0, 1, 4)
    assert Scenario.of({"offload": "nic", "nic_cpus": 1}).nic_cpus == (1,)
