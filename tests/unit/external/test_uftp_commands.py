"""UFTP's command lines and what its status file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.communicators import group_names
from experiments.external.site import Place
from experiments.external.uftp import commands
from experiments.scenario import MAX_TREES

PLACE = Place("h1", "10.0.0.2", "h1-eth0", 41)
STATUS = """CONNECT;success;0x00000002
CONNECT;success;0x00000003
RESULT;0x00000002;received;4096KB;copy;6093.57KB/s
RESULT;0x00000003;received;4096KB;copy;6093.71KB/s
HSTATS;target;copy;overwrite;skip;totalMB;time;speedKB/s
STATS;0x00000002;1;0;0;4MB;0.685;6093.57KB/s
STATS;0x00000003;1;0;0;4MB;0.691;6093.71KB/s

"""


def test_the_slowest_receiver_counts() -> None:
    assert commands.transfer_seconds(STATUS, 2) == 0.691


@pytest.mark.parametrize("status", ["", STATUS.replace("0x00000003;1;", "0x00000003;0;")])
def test_a_receiver_without_the_file_is_no_success(status: str) -> None:
    assert commands.transfer_seconds(status, 2) is None


def test_every_rank_has_an_identity_and_the_sender_waits_for_all_receivers(tmp_path: Path) -> None:
    sent = commands.sender(PLACE, [1, 2], 50_000_000, 4160, tmp_path / "status", tmp_path / "data")
    assert sent[sent.index("-H") + 1] == "0x00000002,0x00000003"
    assert sent[sent.index("-b") + 1] == str(4160 - 52)
    assert sent[sent.index("-R") + 1] == "50000"
    assert sent[-1] == str(tmp_path / "data")
    received = commands.receiver(PLACE, 1, tmp_path)
    assert received[received.index("-U") + 1] == "0x00000002"
    assert received[received.index("-M") + 1] == sent[sent.index("-M") + 1]


def test_its_group_is_none_of_the_trees() -> None:
    assert commands.GROUP not in group_names(MAX_TREES)
