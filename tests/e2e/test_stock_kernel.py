"""What only a stock kernel has: Open vSwitch's kernel datapath, and netem. Elsewhere ``make test-stock`` boots one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.command import NEEDS, treecast
from tests.e2e.sandboxed import needs
from topo.probe import probe

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.stock, needs(*NEEDS)]


@pytest.fixture(scope="module", autouse=True)
def stock_kernel() -> None:
    """Skip, saying why, on a kernel that lacks them; on one that was started for these tests that is a failure."""
    platform = probe()
    if (platform.datapath, platform.delay) != ("kernel", "netem"):
        give_up = pytest.fail if "STOCK_KERNEL" in os.environ else pytest.skip
        give_up("this kernel has not both openvswitch and netem; make test-stock starts one that has")


def test_the_doctor_finds_a_kernel_that_lacks_nothing_and_uses_it(tmp_path: Path) -> None:
    said = treecast(tmp_path, "doctor")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert {"used: Open vSwitch's kernel datapath", "used: netem for delays", "ready"} <= set(lines)
    assert not [line for line in lines if line.startswith("kernel feature") and not line.endswith(": works")]
