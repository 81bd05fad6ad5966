"""Faults on what a host receives or sends, put into its endpoint while that runs (``endpoints.io.live_faults``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from endpoints.impairments.impairer import Tally
from endpoints.impairments.spec import ImpairmentSpec
from endpoints.io.live_faults import LiveFaults, Tallies
from experiments.errors import ExperimentFailed
from experiments.faults.fault import Fault

ANSWER_S = 1.0
"""An endpoint looks between two naps of at most 40 ms; one that is stopped does not."""


def spec_of(fault: Fault, ranks: Mapping[str, int]) -> ImpairmentSpec:
    """The fault as endpoints take it; ``ranks`` is by host."""
    way, kind = fault.kind.split()
    values: dict[str, Any] = dict(fault.values)
    return ImpairmentSpec(
        kind,
        direction="rx" if way == "rx" else "tx",
        hosts=frozenset({ranks[fault.place]}),
        senders=frozenset(ranks[host] for host in values.get("from", ())),
        probability=values.get("probability"),
        psns=values.get("psn"),
        time_ns=values.get("by"),
        packets=values.get("behind"),
    )


class EndpointFaults:
    """``ranks`` and the pipes to the endpoints, ``controls``, are by host; a NIC's workers have one each."""

    name = "endpoint"

    def __init__(self, ranks: Mapping[str, int], controls: Mapping[str, Sequence[Connection]]) -> None:
        self._ranks = ranks
        self._controls = controls
        self._live: dict[str, dict[int, ImpairmentSpec]] = {host: {} for host in controls}
        self._host: dict[int, str] = {}
        self._serial = 0

    def takes(self, fault: Fault) -> bool:
        """What happens to packets at a host."""
        return fault.target == "host" and fault.kind.startswith(("rx ", "tx "))

    def apply(self, number: int, fault: Fault) -> None:
        """In force when the endpoint has said so."""
        host = fault.place
        self._live[host][number] = spec_of(fault, self._ranks)
        try:
            self._ask(host)
        except ExperimentFailed:
            del self._live[host][number]
            raise
        self._host[number] = host

    def observe(self, number: int) -> Mapping[str, int]:
        """Packets that it concerned, and those of them that it struck."""
        return self._counts(self._ask(self._host[number]), number)

    def clear(self, number: int) -> Mapping[str, int]:
        """Packets that are held back already are let go in their time."""
        host = self._host.pop(number)
        del self._live[host][number]
        return self._counts(self._ask(host), number)

    def _ask(self, host: str) -> Tallies:
        """Have exactly the live faults of a host in force there."""
        self._serial += 1
        answers = [self._ask_one(host, pipe) for pipe in self._controls[host]]
        return Tallies(self._serial, _together([answer.tallies for answer in answers]))

    def _ask_one(self, host: str, pipe: Connection) -> Tallies:
        try:
            pipe.send(LiveFaults(self._serial, self._live[host]))
            while pipe.poll(ANSWER_S):
                answer: Tallies = pipe.recv()
                if answer.serial == self._serial:  # an earlier one may have come too late
                    return answer
        except (OSError, EOFError):
            raise ExperimentFailed(f"the endpoint of {host} has ended") from None
        raise ExperimentFailed(f"the endpoint of {host} does not answer: is it stopped?")

    @staticmethod
    def _counts(answer: Tallies, number: int) -> dict[str, int]:
        tally = answer.tallies.get(number)
        return {} if tally is None else {"packets": tally.packets, "struck": tally.struck}


def _together(workers: Sequence[Mapping[int, Tally]]) -> dict[int, Tally]:
    """What the workers of one host counted, by fault."""
    numbers = dict.fromkeys(number for tallies in workers for number in tallies)
    found = {number: [tallies[number] for tallies in workers if number in tallies] for number in numbers}
    return {n: Tally(sum(it.packets for it in its), sum(it.struck for it in its)) for n, its in found.items()}
