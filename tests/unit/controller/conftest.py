"""Fabrics of every kind that the controller's tests walk over."""

from __future__ import annotations

import pytest

from topo.fabric import Fabric
from topo.registry import parse_topology

SHAPES = (
    "fattree,k=2",
    "fattree,k=4",
    "fattree,k=6",
    "fattree,k=8",
    "leafspine",
    "leafspine,leaves=1,spines=1,hosts=1",
    "leafspine,leaves=3,spines=5,hosts=2",
    "leafspine,leaves=5,spines=3,hosts=7",
    "single,hosts=1",
    "single,hosts=9",
)


@pytest.fixture(scope="session", params=SHAPES)
def fabric(request: pytest.FixtureRequest) -> Fabric:
    """Each shape in turn."""
    return parse_topology(request.param)


@pytest.fixture(scope="session")
def k4() -> Fabric:
    """The fat tree of the examples: 16 hosts, 20 switches."""
    return parse_topology("fattree,k=4")
