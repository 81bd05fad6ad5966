"""Frames walked from switch to switch by given rules, and what is wrong with where they get.

Every copy of a frame is followed. A problem names the switch whose rule is to blame, as far as that can be told from
outside: for a member that got nothing, the nearest switch that had the frame; for a second copy, the switches that sent
the two copies and the one where their ways part.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from controller.forwarding import Decision, FrameClass, RuleError, decide, describe_flow, describe_group
from controller.live import Live
from controller.rules import ETH_IPV4, PROTO_IGMP, SwitchRules


class Walks:
    """Walks through one fabric under one set of rules. Problems of one kind, at one rule, are one line with a count."""

    def __init__(self, live: Live, rules: Mapping[str, SwitchRules]) -> None:
        self.live = live
        self.rules = rules
        self.attached = [h for h in live.fabric.host if h in live.host_ports[live.fabric.edge_of[h]]]
        self._distances: dict[str, dict[str, int]] = {}
        self._met: dict[tuple[str, str, str], list[str]] = {}

    def problems(self) -> list[str]:
        """``switch: its rule: what is wrong: example (and 5 more)``, in the order in which they were met."""
        return [
            f"{switch}: {rule}: {kind}: {examples[0]}" + (f" (and {len(examples) - 1} more)" if examples[1:] else "")
            for (switch, rule, kind), examples in self._met.items()
        ]

    def deliver(self, sender: str, frame: FrameClass, members: Collection[str]) -> None:
        """Walk a frame that all ``members`` but the sender should get, once each, and nobody else."""
        _Walk(self, sender, frame, members).run()

    def end_at_edge(self, sender: str, frame: FrameClass, *, to_controller: bool) -> None:
        """Look at a frame that must not get past the sender's switch."""
        edge = self.live.fabric.edge_of[sender]
        decision = self.decide(edge, frame, self.live.fabric.port_to[edge][sender], sender)
        if decision.ports:
            self.problem(edge, decision, frame, "forwarded, should end here", f"from {sender}")
        if decision.to_controller != to_controller:
            kind = "not handed to the controller" if to_controller else "handed to the controller"
            self.problem(edge, decision, frame, kind, f"from {sender}")

    def decide(self, switch: str, frame: FrameClass, in_port: int, sender: str) -> Decision:
        """What ``switch`` does to the frame; rules without a meaning are a problem, and drop."""
        try:
            return decide(self.rules.get(switch, SwitchRules()), frame, in_port)
        except RuleError as error:
            self._met.setdefault((switch, str(error), "no telling what it does"), []).append(f"from {sender}")
            return Decision(None, None, (), to_controller=False)

    def distances(self, edge: str) -> dict[str, int]:
        """Hops of every switch from ``edge``; remembered."""
        if edge not in self._distances:
            self._distances[edge] = self.live.distances([edge])
        return self._distances[edge]

    def problem(self, switch: str, decision: Decision, frame: FrameClass, kind: str, example: str) -> None:
        """Note something that is wrong with the rule that decided at ``switch``."""
        if decision.flow is None:
            rule = f"no rule for {_describe(frame)}"
        else:
            rule = describe_flow(decision.flow)
            rule += f", {describe_group(decision.group)}" if decision.group else ""
            kind = kind if decision.flow.match.ipv4_dst else f"{_describe(frame)} {kind}"
        self._met.setdefault((switch, rule, kind), []).append(example)


class _Walk:
    """One frame and all its copies."""

    def __init__(self, walks: Walks, sender: str, frame: FrameClass, members: Collection[str]) -> None:
        self.walks = walks
        self.live = walks.live
        self.sender = sender
        self.frame = frame
        self.members = members
        self.edge = self.live.fabric.edge_of[sender]
        self.decided: dict[str, Decision] = {}
        self.came_from: dict[str, str] = {}
        self.reached: set[str] = set()

    def run(self) -> None:
        """Follow every copy to its end, once through each switch, so that a loop ends too."""
        queue = [(self.edge, self.live.fabric.port_to[self.edge][self.sender])]
        while queue:
            switch, in_port = queue.pop()
            decision = self.walks.decide(switch, self.frame, in_port, self.sender)
            self.decided[switch] = decision
            if decision.to_controller:
                self._problem(switch, "handed to the controller")
            if not decision.ports and switch != self.edge:
                self._problem(self.came_from[switch], f"sends to {switch}, which passes it on to nobody")
            onwards = [port for port in decision.ports if self._passes(switch, port)]
            queue += [(self.live.fabric.ports[switch][port], self.live.far_port[switch, port]) for port in onwards]
        for member in self.members:
            if member != self.sender and member not in self.reached:
                self._missed(member)

    def _passes(self, switch: str, port: int) -> bool:
        """Look at a copy that leaves by ``port``: whether it goes on to a switch that has not had the frame."""
        peer = self.live.fabric.ports[switch].get(port)
        if peer in self.live.host_ports[switch]:
            self._arrived(switch, peer)
            return False
        if peer is None or port not in self.live.trunks[switch]:
            self._problem(switch, f"port {port} leads nowhere")
            return False
        if peer in self.came_from or peer == self.edge:
            self._twice(switch, peer)
            return False
        self.came_from[peer] = switch
        return True

    def _arrived(self, switch: str, host: str) -> None:
        if host in self.reached:
            self._problem(switch, "reached twice", f"{host} from {self.sender}")
        elif host == self.sender:
            self._problem(switch, "returned to its sender", host)
        elif host not in self.members:
            self._problem(switch, "reached, should not be", f"{host} from {self.sender}")
        self.reached.add(host)

    def _twice(self, switch: str, peer: str) -> None:
        """A second copy is on its way to ``peer``."""
        second, first = self._way(switch), self._way(self.came_from[peer]) if peer in self.came_from else []
        parting = [one for one, other in zip(second, first, strict=False) if one == other][-1:]
        example = f"from {self.sender} by {'-'.join([*second, peer])} and {'-'.join([*first, peer])}"
        for suspect in dict.fromkeys([*parting, *first[-1:], switch]):
            self._problem(suspect, f"a loop, or a second way to {peer}", example)

    def _way(self, switch: str) -> list[str]:
        """The switches from the sender's to ``switch``."""
        way = [switch]
        while way[-1] in self.came_from:
            way.append(self.came_from[way[-1]])
        return way[::-1]

    def _missed(self, member: str) -> None:
        """``member`` got nothing, which is no fault if it is cut off."""
        edge = self.live.fabric.edge_of[member]
        distance = self.walks.distances(edge)
        if self.edge in distance and member in self.live.host_ports[edge]:
            nearest = min(self.decided, key=lambda switch: (distance[switch], switch))
            self._problem(nearest, "not reached", f"{member} from {self.sender}")

    def _problem(self, switch: str, kind: str, example: str = "") -> None:
        self.walks.problem(switch, self.decided[switch], self.frame, kind, example or f"from {self.sender}")


def _describe(frame: FrameClass) -> str:
    if frame.eth_type != ETH_IPV4:
        return f"ethertype {frame.eth_type:#06x}"
    return f"{'IGMP' if frame.ip_proto == PROTO_IGMP else 'IPv4'} to {frame.ipv4_dst}"
