"""Which external programs there are, when one is left out, and what is then said."""

from __future__ import annotations

import pytest

from endpoints.collectives.registry import UnknownCollective
from experiments.algorithms import algorithm, algorithms
from experiments.errors import EnvironmentMissing
from experiments.external.registry import externals
from experiments.guests import excuses
from experiments.results import Skipped, Summary
from experiments.scenario import Scenario
from topo.platform import MODULES, PROGRAMS, Facts, Platform, choose

ALL = {need.name for need in (*PROGRAMS, *MODULES)}


def platform(*lacking: str) -> Platform:
    return choose(Facts(root=True, programs=frozenset(ALL - {*lacking}), modules=frozenset(ALL - {*lacking})))


def test_each_needs_only_what_the_platform_looks_for_and_does_not_require() -> None:
    optional = {need.name for need in (*PROGRAMS, *MODULES) if not need.required}
    for entry in externals().values():
        assert entry.needs
        assert set(entry.needs) <= optional, entry.name


def test_an_external_algorithm_stands_wherever_an_algorithm_does() -> None:
    assert externals().keys() <= algorithms().keys()
    scenario = Scenario.of({"algorithms": "mcast_allgather,openmpi_allgather"})
    assert [entry.kind for entry in scenario.collectives] == ["allgather", "allgather"]
    with pytest.raises(UnknownCollective, match=r"'openmpi': known are .*mcast_allgather.*openmpi_allgather"):
        algorithm("openmpi")


@pytest.mark.parametrize(
    ("lacking", "reason"),
    [
        ((), None),
        (("tshark", "uftpd"), None),
        (("mpirun.openmpi",), "openmpi-bin is not installed: apt-get install openmpi-bin"),
        (
            ("mpi4py", "mpirun.openmpi"),
            "openmpi-bin and python3-mpi4py are not installed: apt-get install openmpi-bin python3-mpi4py",
        ),
    ],
)
def test_what_is_not_installed_is_named_with_its_packages(lacking: tuple[str, ...], reason: str | None) -> None:
    assert externals()["openmpi_allgather"].lacks(platform(*lacking).missing) == reason


def test_two_missing_programs_of_one_package_are_one_package() -> None:
    reason = externals()["uftp_broadcast"].lacks(platform("uftp", "uftpd").missing)
    assert reason == "uftp is not installed: apt-get install uftp"


def test_what_is_missing_of_an_external_program_blocks_no_run() -> None:
    assert platform("mpirun.openmpi", "mpi4py", "uftp", "uftpd").blockers == ()


def test_the_missing_are_left_out_and_the_others_run() -> None:
    scenario = Scenario.of({"algorithms": "mcast_allgather,openmpi_allgather,uftp_broadcast"})
    assert excuses(scenario, platform()) == {}
    assert excuses(scenario, platform("uftpd")) == {"uftp_broadcast": "uftp is not installed: apt-get install uftp"}


@pytest.mark.parametrize("faults", [{"loss": "1%"}, {"impairments": [{"kind": "drop", "psns": "3"}]}])
def test_injected_faults_would_be_spared_external_programs_so_they_are_left_out(faults: dict[str, object]) -> None:
    scenario = Scenario.of({"algorithms": "mcast_allgather,openmpi_allgather", **faults})
    assert "would not reach it" in excuses(scenario, platform())["openmpi_allgather"]


def test_a_scenario_of_which_nothing_is_left_is_refused() -> None:
    scenario = Scenario.of({"algorithms": "openmpi_allgather"})
    with pytest.raises(EnvironmentMissing, match="openmpi_allgather: openmpi-bin is not installed"):
        excuses(scenario, platform("mpirun.openmpi"))


def test_an_external_program_is_not_bound_by_what_an_immediate_can_number() -> None:
    small = {"mtu": 256, "size_bytes": 1 << 28, "op_bits": 16}
    assert Scenario.of({"algorithms": "openmpi_allgather", **small}).size_bytes == 1 << 28


def test_what_was_left_out_is_read_back_from_a_summary_and_older_ones_have_none() -> None:
    summary = Summary.model_validate(
        {
            "scenario": {},
            "platform": {"kernel": "6.1", "datapath": "user"},
            "runs": [],
            "skipped": [{"algorithm": "uftp_broadcast", "reason": "uftp is not installed"}],
        }
    )
    again = Summary.from_json(summary.to_json())
    assert again.skipped == [Skipped(algorithm="uftp_broadcast", reason="uftp is not installed")]
    old = summary.model_dump(exclude={"skipped"})
    assert Summary.model_validate(old).skipped == []
