"""The largest fabric that is promised: 128 hosts and 80 switches on one machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.command import NEEDS, start
from tests.e2e.sandboxed import needs

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.slow, needs(*NEEDS)]


@pytest.mark.timeout(600)
def test_128_hosts_exchange_their_blocks_and_every_byte_is_right(tmp_path: Path) -> None:
    command = start(tmp_path, "--topo", "fattree,k=8", "--size", "64KiB", "--bw", "5", "--warmup", "0")
    done = command.ended(bound_s=500.0)
    result = done.verified()
    assert result.ranks == 128
    assert len({link for link, count in result.link_bytes_theory.items() if count}) > 128
    assert sum(result.link_bytes.values()) == pytest.approx(sum(result.link_bytes_theory.values()), rel=0.01)
