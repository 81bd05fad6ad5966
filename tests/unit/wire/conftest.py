from __future__ import annotations

import pytest

from endpoints.core.communicator import Communicator, GroupAddress, Peer
from endpoints.wire.codec import Codec
from endpoints.wire.templates import Templates, build_templates

SIZE = 5


def make_communicator(mtu: int = 1024, groups: int = 2) -> Communicator:
    """Five ranks 10.0.0.1, 10.0.1.1, ... and trees 239.1.0.0, 239.1.0.1, ..."""
    peers = tuple(Peer(r, f"h{r + 1}", bytes([2, 0, 0, 0, r, 1]), 0x0A000001 + (r << 8)) for r in range(SIZE))
    trees = tuple(GroupAddress(0xEF010000 + g, bytes([1, 0, 0x5E, 1, 0, g])) for g in range(groups))
    return Communicator(peers, trees, mtu, 50_000_000)


@pytest.fixture(scope="session")
def templates() -> Templates:
    return build_templates()


@pytest.fixture
def comm() -> Communicator:
    return make_communicator()


@pytest.fixture
def sender(comm, templates) -> Codec:
    """Rank 1."""
    return Codec(comm, 1, templates)


@pytest.fixture
def receiver(comm, templates) -> Codec:
    """Rank 3."""
    return Codec(comm, 3, templates)
