"""The planner: events from the switches in, commands for every switch out. It decides; the Ryu application obeys.

It knows what every switch has been told and what it should hold. :meth:`Planner.replan` closes the gap, one generation
at a time: a new one begins only when every connected switch has answered the barrier that ends the last. Whatever
happens meanwhile (thousands of IGMP reports, if everybody joins at once) waits for it and is planned for together.

A change that takes something away at one switch and adds something at another goes in two generations, first what old
and new plan have in common, then the new plan: so no mixture of two trees ever forwards (see ``rules.common``).

A switch that connects, for the first time or again, is cleared and told everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from controller.igmp import Reason, read_frame
from controller.live import End, Live
from controller.membership import Membership, MembershipChange
from controller.plan import Plan, assign_slots, fixed_flows, make_plan
from controller.rules import Barrier, Clear, Command, SwitchRules, common, difference
from topo.fabric import Fabric


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a frame that a switch handed up: memberships that changed, and why anything was not taken."""

    changes: tuple[MembershipChange, ...] = ()
    rejected: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Programmed:
    """Every switch has confirmed every rule of ``generation``. With ``fabric`` these values give the plan again.

    ``groups``: members by group. ``slots``: the groups' numbers. ``down``: link ends that are down.
    """

    generation: int
    groups: dict[str, frozenset[str]]
    slots: dict[str, int]
    down: frozenset[End]

    def plan(self, fabric: Fabric) -> Plan:
        """What the switches have confirmed, computed anew."""
        return make_plan(Live(fabric, self.down), self.groups, self.slots)


class Planner:
    """See the module. Methods that take an event return at once; only :meth:`replan` computes."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.generation = 0
        self.rejected: Counter[Reason] = Counter()
        """Bytes, or records, that came from hosts and were not taken, by reason."""
        self._membership = Membership()
        self._live = Live(fabric)
        self._fixed = fixed_flows(self._live)
        self._down: frozenset[End] = frozenset()
        self._slots: dict[str, int] = {}
        self._told: dict[str, SwitchRules] = {}  # of each connected switch
        self._fresh: set[str] = set()  # connected, but not yet cleared
        self._refused: set[str] = set()  # answered with an error: what they hold is not known
        self._awaited: dict[str, int] = {}  # switch -> generation whose barrier it still has to answer
        self._dirty = True
        self._announced = 0

    @property
    def connected(self) -> int:
        """How many switches of the fabric are connected."""
        return len(self._told)

    @property
    def groups(self) -> dict[str, frozenset[str]]:
        """The members of every group, as the hosts have said."""
        return self._membership.groups()

    def switch_up(self, switch: str, ports: Mapping[int, bool]) -> None:
        """``switch`` has connected; ``ports`` says of each port that it has whether its link is up."""
        self._told[switch] = SwitchRules()
        self._fresh.add(switch)
        self._refused.discard(switch)
        self._awaited.pop(switch, None)
        self._set_down(switch, {port for port in self.fabric.ports[switch] if not ports.get(port, False)})
        self._dirty = True

    def switch_down(self, switch: str) -> None:
        """The connection of ``switch`` is gone. Its rules stay in force and its links count as they did."""
        self._told.pop(switch, None)
        self._fresh.discard(switch)
        self._awaited.pop(switch, None)

    def port_changed(self, switch: str, port: int, *, up: bool) -> None:
        """A port's link went down or came back. Ports that are not in the fabric do not matter."""
        down = {number for node, number in self._down if node == switch}
        if port in self.fabric.ports[switch]:
            self._set_down(switch, down - {port} if up else down | {port})

    def frame_seen(self, switch: str, port: int, frame: bytes) -> Seen:
        """A frame that ``switch`` handed up from ``port``: IGMP, and from a host, or it is counted and dropped."""
        host = self.fabric.ports[switch].get(port)
        if host not in self.fabric.host:
            self.rejected[Reason.NOT_A_HOST_PORT] += 1
            return Seen(rejected=(Reason.NOT_A_HOST_PORT,))
        report = read_frame(frame)
        self.rejected.update(report.rejected)
        changes = [self._membership.apply(host, record) for record in report.records]
        seen = Seen(tuple(change for change in changes if change is not None), report.rejected)
        self._dirty = self._dirty or bool(seen.changes)
        return seen

    def acknowledged(self, switch: str, generation: int) -> None:
        """``switch`` has answered the barrier that ends its commands of ``generation``."""
        if self._awaited.get(switch) == generation:
            del self._awaited[switch]

    def refused(self, switch: str) -> None:
        """``switch`` has answered a command with an error. Nothing counts as programmed until it connects again."""
        self._refused.add(switch)

    def replan(self) -> dict[str, tuple[Command, ...]]:
        """The commands of the next generation, each switch's ending in a barrier; empty if there is nothing to do.

        Also empty while a switch has yet to answer for the last generation: call again when it has.
        """
        if self._awaited or not self._dirty:
            return {}
        self.generation += 1
        if self._live.down != self._down:
            self._live = Live(self.fabric, self._down)
            self._fixed = fixed_flows(self._live)
        self._slots = assign_slots(self.groups, self._slots)
        target = make_plan(self._live, self.groups, self._slots, self._fixed).rules
        step = {switch: common(told, target[switch]) for switch, told in self._told.items()}
        self._dirty = step != self._told and any(step[switch] != target[switch] for switch in step)
        return self._commands(step if self._dirty else target)

    def announce(self) -> Programmed | None:
        """What has been programmed, once per generation, when it is complete; else None."""
        complete = self.connected == len(self.fabric.switches) and not (self._dirty or self._awaited or self._refused)
        if not complete or self._announced == self.generation:
            return None
        self._announced = self.generation
        return Programmed(self.generation, self.groups, dict(self._slots), self._down)

    def _set_down(self, switch: str, ports: set[int]) -> None:
        """Exactly these ports of ``switch`` are down."""
        down = frozenset(end for end in self._down if end[0] != switch) | {(switch, port) for port in ports}
        self._dirty = self._dirty or down != self._down
        self._down = down

    def _commands(self, rules: Mapping[str, SwitchRules]) -> dict[str, tuple[Command, ...]]:
        """Commands that bring every connected switch to ``rules``; notes that they have been told and must answer."""
        batches: dict[str, tuple[Command, ...]] = {}
        for switch, told in sorted(self._told.items()):
            commands: tuple[Command, ...] = (Clear(), Barrier()) if switch in self._fresh else ()
            commands += difference(told, rules[switch])
            if commands:
                batches[switch] = (*commands, Barrier(self.generation))
                self._told[switch] = rules[switch]
                self._awaited[switch] = self.generation
        self._fresh.clear()
        return batches
