"""The planner: events from the switches in, commands for every switch out. It decides; the Ryu application obeys.

It knows what every switch has been told and what it should hold. :meth:`Planner.replan` closes the gap, one generation
at a time: a new one begins only when every connected switch has answered the barrier that ends the last. Whatever
happens meanwhile (thousands of IGMP reports, if everybody joins at once) waits for it and is planned for together.

A change that takes something away at one switch and adds something at another goes in two generations, first what old
and new plan have in common, then the new plan: so no mixture of two trees ever forwards (see ``rules.common``). Where a
frame that is under way could still come to a switch twice, queues have to run dry in between (``inflight``).

What a switch holds when it connects is where its rules start from: nothing is flushed. A planner that is new itself,
since its predecessor was killed, learns from the switches who was a member of what. What these do not know, since they
were off or a host's link was down, the hosts do. They are asked (IGMP) when their switch has connected or a port to one
of them has come up, as soon as the rules are in that bring the answers.

A switch that is not connected cannot be told anything, but may go on forwarding by what it holds. As long as it might
come back soon nothing is changed anywhere; once it is given up, or its neighbours say that all its links are down, it
counts as down, and the others are led around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from controller.igmp import Reason, read_frame
from controller.inflight import returns
from controller.live import End, Live, switch_ends
from controller.membership import Membership, MembershipChange
from controller.plan import Plan, assign_slots, fixed_flows, make_plan, planned_groups
from controller.rules import AskHosts, Barrier, Clear, Command, SwitchRules, common, difference, only_grows
from topo.fabric import Fabric


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a frame that a switch handed up: memberships that changed, and why anything was not taken."""

    changes: tuple[MembershipChange, ...] = ()
    rejected: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Programmed:
    """Every switch has confirmed every rule of ``generation``. With ``fabric`` these values give the plan again.

    ``groups``: members by group. ``slots``: the groups' numbers. ``down``: link ends that are down, or count as down
    since they are those of the switches ``absent``, which are not connected and have confirmed nothing.
    """

    generation: int
    groups: dict[str, frozenset[str]]
    slots: dict[str, int]
    down: frozenset[End]
    absent: tuple[str, ...] = ()

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
        self.draining = False
        """Whether queues have to run dry before :meth:`replan` is called the next time."""
        self._membership = Membership()
        self._live = Live(fabric)
        self._fixed = fixed_flows(self._live)
        self._down: frozenset[End] = frozenset()  # as the ports say
        self._slots: dict[str, int] = {}
        self._told: dict[str, SwitchRules] = {}  # of each connected switch
        self._given_up: set[str] = set()  # not connected, and not waited for
        self._unread: set[str] = set()  # connected, hold what we cannot express: to be cleared
        self._unasked: set[str] = set()  # switches whose hosts have to be asked what they are members of
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

    @property
    def missing(self) -> tuple[str, ...]:
        """The switches that are waited for: not connected, not given up, and not cut off from all others."""
        absent = (switch.name for switch in self.fabric.switches if switch.name not in self._told)
        return tuple(name for name in absent if name not in self._given_up and not self._is_cut_off(name))

    def switch_up(self, switch: str, held: SwitchRules | None) -> None:
        """``switch`` has connected and holds these rules; None if there are some among them that no plan has."""
        self._told[switch] = held or SwitchRules()
        (self._unread.discard if held is not None else self._unread.add)(switch)
        self._given_up.discard(switch)
        self._refused.discard(switch)
        self._awaited.pop(switch, None)
        self._unasked.add(switch)
        if self.generation == 0:
            for group in planned_groups(self.fabric, switch, self._told[switch]):
                self._slots[group.address] = group.slot
                for host in group.hosts:
                    self._membership.remember(group.address, host)
        self._dirty = True

    def switch_down(self, switch: str) -> None:
        """The connection of ``switch`` is gone. Its rules stay in force, and it is waited for."""
        self._told.pop(switch, None)
        self._unread.discard(switch)
        self._awaited.pop(switch, None)
        self._dirty = True

    def give_up(self) -> None:
        """The switches that are waited for count as down from now on, until they connect."""
        self._given_up.update(self.missing)
        self._dirty = True

    def ports_seen(self, switch: str, ports: Mapping[int, bool]) -> None:
        """``switch`` has said of each port that it has whether its link is up."""
        self._set_down(switch, {port for port in self.fabric.ports[switch] if not ports.get(port, False)})

    def port_changed(self, switch: str, port: int, *, up: bool) -> None:
        """A port's link went down or came back. Ports that are not in the fabric do not matter."""
        down = {number for node, number in self._down if node == switch}
        if port in self.fabric.ports[switch]:
            self._set_down(switch, down - {port} if up else down | {port})
        if up and self.fabric.ports[switch].get(port) in self.fabric.host:
            self._unasked.add(switch)

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
        if self._awaited or not self._dirty or self.missing:
            return {}
        self.generation += 1
        down = self._effectively_down()
        if self._live.down != down:
            self._live = Live(self.fabric, down)
            self._fixed = fixed_flows(self._live)
        self._slots = assign_slots(self.groups, self._slots)
        plan = make_plan(self._live, self.groups, self._slots, self._fixed)
        target = {switch: plan.rules[switch] for switch in self._told}
        self.draining = False
        self._dirty = not all(only_grows(told, target[switch]) for switch, told in self._told.items())
        if not self._dirty:
            return self._commands(target)
        self.draining = bool(returns(self.fabric, self._told, target))
        return self._commands({switch: common(told, target[switch]) for switch, told in self._told.items()})

    def announce(self) -> Programmed | None:
        """What has been programmed, once per generation, when it is complete; else None."""
        if self._dirty or self._awaited or self._refused or self.missing or self._announced == self.generation:
            return None
        self._announced = self.generation
        absent = tuple(switch.name for switch in self.fabric.switches if switch.name not in self._told)
        return Programmed(self.generation, self.groups, dict(self._slots), self._live.down, absent)

    def _is_cut_off(self, switch: str) -> bool:
        """Whether every link of ``switch`` to another switch is known to be down."""
        links = [((switch, port), (peer, self.fabric.port_to[peer][switch])) for port, peer in self._trunks(switch)]
        return bool(links) and all(one in self._down or other in self._down for one, other in links)

    def _trunks(self, switch: str) -> list[tuple[int, str]]:
        return [item for item in self.fabric.ports[switch].items() if item[1] in self.fabric.switch]

    def _effectively_down(self) -> frozenset[End]:
        """The link ends that are down, and all of the switches that are not connected."""
        absent = (switch.name for switch in self.fabric.switches if switch.name not in self._told)
        return self._down.union(*(switch_ends(self.fabric, switch) for switch in absent))

    def _set_down(self, switch: str, ports: set[int]) -> None:
        """Exactly these ports of ``switch`` are down."""
        down = frozenset(end for end in self._down if end[0] != switch) | {(switch, port) for port in ports}
        self._dirty = self._dirty or down != self._down
        self._down = down

    def _commands(self, rules: Mapping[str, SwitchRules]) -> dict[str, tuple[Command, ...]]:
        """Commands that bring every connected switch to ``rules``; notes that they have been told and must answer."""
        batches: dict[str, tuple[Command, ...]] = {}
        for switch, told in sorted(self._told.items()):
            commands: tuple[Command, ...] = (Clear(), Barrier()) if switch in self._unread else ()
            commands += difference(told, rules[switch])
            if not self._dirty and switch in self._unasked:
                commands += self._questions(switch)
            if commands:
                batches[switch] = (*commands, Barrier(self.generation))
                self._told[switch] = rules[switch]
                self._awaited[switch] = self.generation
        self._unread.clear()
        return batches

    def _questions(self, switch: str) -> tuple[Command, ...]:
        self._unasked.discard(switch)
        ports = tuple(port for port, peer in self.fabric.ports[switch].items() if peer in self.fabric.host)
        return (Barrier(), AskHosts(ports)) if ports else ()
