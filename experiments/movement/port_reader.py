"""Reads the counters of every port when the fabric is quiet: the kernel's, then OpenFlow's, then the kernel's again."""

from __future__ import annotations

import time

from experiments.controller_process import ControllerProcess
from experiments.movement.port_traffic import Reading
from topo.mininet_net import EmulatedFabric

PATIENCE_S = 2.0
"""Time that the last frames of an operation have to arrive: 1,000 full ones leave a queue of 50 Mbit/s in 0.7 s."""


class PortReader:
    """See the module."""

    def __init__(self, net: EmulatedFabric, controller: ControllerProcess) -> None:
        self._net = net
        self._controller = controller

    def read(self) -> Reading:
        """All counters at a moment when none of them moved; if the fabric is never still, at the last one."""
        deadline = time.monotonic() + PATIENCE_S
        first = self._net.interface_counters()
        while True:
            openflow = self._controller.port_counters()
            second = self._net.interface_counters()
            if second == first or time.monotonic() > deadline:
                return Reading(second, openflow, quiet=second == first)
            first = second
