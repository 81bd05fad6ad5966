"""The result file: its schema, and that its scenario repeats the run."""

from __future__ import annotations

import json

import pytest

from experiments.errors import UserError
from experiments.results import Packets, PlatformInfo, Run, Summary
from experiments.scenario import Scenario


def a_run(**changes: object) -> Run:
    values: dict[str, object] = {
        "algorithm": "mcast_allgather",
        "iteration": 1,
        "ranks": 16,
        "bytes_per_rank": 1 << 20,
        "verified": True,
        "seconds": 2.6,
        "limit_seconds": 2.516582,
        "limit_ratio": 0.968,
        "phases": {"barrier": [0.01] * 16, "multicast": [2.5] * 16, "recovery": [0.0] * 16, "handshake": [0.01] * 16},
        "packets": Packets(sent=4096, received=61440, rejected={"bad_icrc": 2}),
        "link_bytes": {"h1->e00": 1066496},
        "link_bytes_theory": {"h1->e00": 1066496},
        "host_tx_bytes": {"h1": 1066496},
        "cpu": {"switches": 1.2},
    }
    return Run.model_validate(values | changes)


def a_summary(*runs: Run) -> Summary:
    return Summary(scenario=Scenario(), platform=PlatformInfo(kernel="6.1", datapath="user"), runs=list(runs))


def test_the_file_has_the_keys_that_every_reader_relies_on() -> None:
    written = json.loads(a_summary(a_run()).to_json())
    assert set(written) == {
        *("version", "scenario", "platform", "hosts", "probe_bps", "runs", "skipped", "faults", "fidelity")
    }
    assert written["version"] == 1
    assert written["fidelity"] == {"verdict": "unknown", "reasons": ["not assessed"], "figures": {}}
    assert written["platform"]["datapath"] == "user"
    assert set(written["runs"][0]) >= {
        *("algorithm", "ranks", "bytes_per_rank", "verified", "seconds", "limit_seconds", "limit_ratio"),
        *("phases", "packets", "link_bytes", "link_bytes_theory", "host_tx_bytes", "cpu"),
    }
    assert set(written["runs"][0]["packets"]) == {
        *("sent", "received", "duplicates", "dropped_injected", "lost", "ring_dropped", "recovered", "rejected"),
    }


def test_a_written_summary_reads_back() -> None:
    summary = a_summary(a_run(), a_run(iteration=2, verified=False, seconds=None, limit_ratio=None, error="h3 is gone"))
    assert Summary.from_json(summary.to_json()) == summary


def test_its_scenario_block_is_the_scenario() -> None:
    summary = a_summary(a_run())
    assert Scenario.of(json.loads(summary.to_json())["scenario"]) == summary.scenario


def test_an_experiment_without_runs_or_with_a_wrong_one_is_not_verified() -> None:
    assert a_summary(a_run()).verified
    assert not a_summary().verified
    assert not a_summary(a_run(), a_run(verified=False)).verified


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"version": 2}, "version"), ({"extra": 1}, "extra"), ({"runs": [{"seconds": 1}]}, "runs.0.algorithm")],
)
def test_another_schema_is_refused_by_field(change: dict[str, object], reason: str) -> None:
    text = json.dumps(json.loads(a_summary(a_run()).to_json()) | change)
    with pytest.raises(UserError) as caught:
        Summary.from_json(text)
    assert reason in str(caught.value)


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(UserError, match="the text"):
        Summary.from_json("{")
