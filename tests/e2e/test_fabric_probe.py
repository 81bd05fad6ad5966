"""The probe on this very machine."""

from __future__ import annotations

import socket
import subprocess

import pytest

from tests.e2e.sandboxed import needs
from topo.probe import TRIALS, probe

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.stock, needs("unshare", "ip", "tc", "ovs-vsctl")]


def test_features_are_tried_for_real_and_nothing_is_left() -> None:
    before = socket.if_nameindex()
    platform = probe()
    assert socket.if_nameindex() == before
    assert set(platform.features.values()) <= {True, False}
    assert platform.features["veth"]
    assert platform.features["htb"]
    assert platform.versions["kernel"] == subprocess.check_output(["uname", "-r"], text=True).strip()
    assert platform.versions["mininet"].startswith("2.")
    assert platform.versions["tc"] in subprocess.check_output(["tc", "-V"], text=True)


def test_a_feature_that_the_kernel_has_not_is_found_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRIALS, "netem", "tc qdisc replace dev try0 root handle 2: no_such_qdisc")
    platform = probe()
    assert platform.features["netem"] is False
    assert platform.delay is None
    assert platform.features["tbf"], "later trials do not depend on it"
