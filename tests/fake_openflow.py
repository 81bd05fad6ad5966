"""A switch's OpenFlow 1.3 tables in small: real messages in, the switch's answers out, the rules it then holds.

Messages are taken as bytes and read by Ryu's parser, as a switch would; nothing here knows how ``openflow13`` made
them. What a switch may refuse is refused (GROUP_EXISTS, UNKNOWN_GROUP, BAD_OUT_GROUP, ...), and what it does on the
side is done: a deleted group takes the flows along that point at it (OpenFlow 1.3 section 6.5).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ryu.ofproto import ofproto_v1_3 as of13
from ryu.ofproto import ofproto_v1_3_parser as parser13

from controller.rules import Action, Flow, Group, Match, Output, SwitchRules, ToController, ToGroup


class Protocol:
    """As much of a datapath as Ryu's message classes need."""

    ofproto = of13
    ofproto_parser = parser13
    id = 1


PROTOCOL = Protocol()


@dataclass(frozen=True)
class Error:
    """An OFPT_ERROR: the names of its type and code."""

    type: str
    code: str


@dataclass(frozen=True)
class BarrierReply:
    """An OFPT_BARRIER_REPLY."""

    xid: int


@dataclass
class FakeSwitch:
    """The tables of one switch with these ports (None: any port is good)."""

    ports: frozenset[int] | None = None
    flows: dict[tuple[int, Match], tuple[Action, ...]] = field(default_factory=dict)
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict)
    xid: int = 0
    handed_out: list[tuple[tuple[int, ...], bytes]] = field(default_factory=list)
    """Frames of the controller's, and the ports that they went out of."""

    @property
    def rules(self) -> SwitchRules:
        """What it holds."""
        return SwitchRules(
            frozenset(Flow(priority, match, actions) for (priority, match), actions in self.flows.items()),
            frozenset(Group(number, ports) for number, ports in self.groups.items()),
        )

    def send(self, message: Any) -> Error | BarrierReply | None:
        """One message of Ryu's, serialised and taken in; the answer, if it calls for one."""
        self.xid += 1
        message.set_xid(self.xid)
        message.serialize()
        return self.receive(bytes(message.buf))

    def receive(self, data: bytes) -> Error | BarrierReply | None:
        """One message in bytes."""
        version, kind, length, xid = data[0], data[1], int.from_bytes(data[2:4]), int.from_bytes(data[4:8])
        assert version == of13.OFP_VERSION
        assert length == len(data)
        if kind == of13.OFPT_BARRIER_REQUEST:
            return BarrierReply(xid)
        if kind == of13.OFPT_FLOW_MOD:
            return self._flow_mod(parser13.OFPFlowMod.parser(PROTOCOL, version, kind, length, xid, data))
        if kind == of13.OFPT_PACKET_OUT:
            self.handed_out.append(_packet_out(data))
            return None
        assert kind == of13.OFPT_GROUP_MOD, f"no rule is changed by messages of type {kind}"
        return self._group_mod(data)

    def _flow_mod(self, mod: Any) -> Error | None:
        assert (mod.idle_timeout, mod.hard_timeout, mod.flags, mod.buffer_id) == (0, 0, 0, of13.OFP_NO_BUFFER)
        key = (mod.priority, _match(mod.match))
        if mod.command in (of13.OFPFC_ADD, of13.OFPFC_MODIFY_STRICT):
            assert mod.table_id == 0
            actions = _actions(mod.instructions)
            if any(isinstance(a, ToGroup) and a.group_id not in self.groups for a in actions):
                return Error("OFPET_BAD_ACTION", "OFPBAC_BAD_OUT_GROUP")
            if self.ports is not None and any(isinstance(a, Output) and a.port not in self.ports for a in actions):
                return Error("OFPET_BAD_ACTION", "OFPBAC_BAD_OUT_PORT")
            if key in self.flows or mod.command == of13.OFPFC_ADD:  # modifying nothing is no error (6.4)
                self.flows[key] = actions
            return None
        # Out port and group restrict what is deleted; our commands never do.
        assert (mod.out_port, mod.out_group) == (of13.OFPP_ANY, of13.OFPG_ANY)
        if mod.command == of13.OFPFC_DELETE_STRICT:
            self.flows.pop(key, None)
        else:
            assert mod.command == of13.OFPFC_DELETE
            assert key[1] == Match(), "deletes everything or, strictly, one flow"
            assert mod.table_id == of13.OFPTT_ALL
            self.flows.clear()
        return None

    def _group_mod(self, data: bytes) -> Error | None:
        # Ryu has no parser for this message: section 7.3.4.2, by hand.
        command, kind, number = int.from_bytes(data[8:10]), data[10], int.from_bytes(data[12:16])
        ports = tuple(_bucket_ports(data[16:]))
        assert kind == of13.OFPGT_ALL
        if command == of13.OFPGC_DELETE:
            gone = set(self.groups) if number == of13.OFPG_ALL else {number}
            self.groups = {n: p for n, p in self.groups.items() if n not in gone}
            self.flows = {k: a for k, a in self.flows.items() if not any(ToGroup(n) in a for n in gone)}
            return None
        if command == of13.OFPGC_ADD and number in self.groups:
            return Error("OFPET_GROUP_MOD_FAILED", "OFPGMFC_GROUP_EXISTS")
        if command == of13.OFPGC_MODIFY and number not in self.groups:
            return Error("OFPET_GROUP_MOD_FAILED", "OFPGMFC_UNKNOWN_GROUP")
        if self.ports is not None and not self.ports.issuperset(ports):
            return Error("OFPET_BAD_ACTION", "OFPBAC_BAD_OUT_PORT")
        self.groups[number] = ports
        return None


def _packet_out(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """The ports of a message with nothing but output actions, and its frame: section 7.3.7, as Ryu has no parser."""
    buffer, in_port, size = int.from_bytes(data[8:12]), int.from_bytes(data[12:16]), int.from_bytes(data[16:18])
    assert (buffer, in_port) == (of13.OFP_NO_BUFFER, of13.OFPP_CONTROLLER)
    actions = [data[at : at + 16] for at in range(24, 24 + size, 16)]
    assert {int.from_bytes(action[:2]) for action in actions} == {of13.OFPAT_OUTPUT}
    return tuple(int.from_bytes(action[4:8]) for action in actions), data[24 + size :]


def _bucket_ports(data: bytes) -> list[int]:
    """The ports of buckets that each hold one output action."""
    ports = []
    while data:
        length, watch_port, watch_group = (int.from_bytes(data[i:j]) for i, j in ((0, 2), (4, 8), (8, 12)))
        assert (watch_port, watch_group) == (of13.OFPP_ANY, of13.OFPG_ANY)
        assert length == 32, "one output action of 16 bytes behind a bucket's head of 16"
        assert int.from_bytes(data[16:18]) == of13.OFPAT_OUTPUT
        ports.append(int.from_bytes(data[20:24]))
        data = data[length:]
    return ports


def _match(match: Any) -> Match:
    fields = dict(match.items())
    assert fields.keys() <= {"in_port", "eth_type", "ip_proto", "ipv4_dst"}
    # Prerequisites (7.2.3.8): a switch refuses an IP field without the ethertype.
    assert fields.get("eth_type") == 0x0800 or not fields.keys() & {"ip_proto", "ipv4_dst"}
    return Match(**fields)


def _actions(instructions: list[Any]) -> tuple[Action, ...]:
    actions: list[Action] = []
    for instruction in instructions:
        assert instruction.type == of13.OFPIT_APPLY_ACTIONS
        for action in instruction.actions:
            if action.type == of13.OFPAT_GROUP:
                actions.append(ToGroup(action.group_id))
            elif action.port == of13.OFPP_CONTROLLER:
                assert action.max_len == of13.OFPCML_NO_BUFFER, "the whole frame is wanted"
                actions.append(ToController())
            else:
                actions.append(Output(action.port))
    return tuple(actions)
