"""The rules that a real switch says it holds: what ``ovs-ofctl`` prints, parsed back into values.

``ovs-ofctl -O OpenFlow13 dump-flows BRIDGE`` and ``dump-groups BRIDGE`` (add ``--no-names`` on a terminal). Only what
:mod:`controller.rules` can express has a reading; everything else, a timeout, a mask, a NORMAL action, a select group,
is a :class:`DumpError`, since no rule of ours looks like that.
"""

from __future__ import annotations

import re

from controller.rules import (
    ETH_IPV4,
    PROTO_IGMP,
    Action,
    Flow,
    Group,
    Match,
    Output,
    SwitchRules,
    ToController,
    ToGroup,
)


class DumpError(ValueError):
    """A line of a dump that no rule of ours would give."""


_STATISTICS = frozenset({"cookie", "duration", "n_packets", "n_bytes", "idle_age", "hard_age"})
"""Fields of a dumped flow that do not say what it does."""

_PROTOCOLS: dict[str, tuple[int, int | None]] = {
    "ip": (ETH_IPV4, None),
    "igmp": (ETH_IPV4, PROTO_IGMP),
    "icmp": (ETH_IPV4, 1),
    "tcp": (ETH_IPV4, 6),
    "udp": (ETH_IPV4, 17),
    "arp": (0x0806, None),
    "ipv6": (0x86DD, None),
}
"""The names that ovs-ofctl has for pairs of (ethertype, IP protocol)."""

_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+")


def parse_rules(flows: str, groups: str) -> SwitchRules:
    """The rules of one switch from both of its dumps."""
    return SwitchRules(parse_flows(flows), parse_groups(groups))


def parse_flows(text: str) -> frozenset[Flow]:
    """The flows in the output of ``dump-flows``; DumpError, with the line, for anything unknown."""
    return frozenset(_parse_flow(line) for line in _entries(text))


def parse_groups(text: str) -> frozenset[Group]:
    """The groups in the output of ``dump-groups``; DumpError, with the line, for anything unknown."""
    return frozenset(_parse_group(line) for line in _entries(text))


def _entries(text: str) -> list[str]:
    """The lines of a dump but for its headings (``OFPST_FLOW reply (OF1.3) (xid=0x2):``)."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [line for line in lines if not line.startswith(("OFPST_FLOW ", "OFPST_GROUP_DESC ", "NXST_FLOW "))]


def _parse_flow(line: str) -> Flow:
    head, separator, actions = line.partition(" actions=")
    if not separator:
        raise DumpError(f"no actions in the flow {line!r}")
    priority = 0x8000  # OFP_DEFAULT_PRIORITY, which a dump leaves out
    match: dict[str, int | str] = {}
    for token in re.split(r",\s*", head):
        key, _, value = token.partition("=")
        if key == "priority":
            priority = _number(value, line)
        elif key == "table":
            if value != "0":
                raise DumpError(f"table {value} in the flow {line!r}: our rules are all in table 0")
        elif key not in _STATISTICS:
            match |= _match_field(key, value, line)
    return Flow(priority, Match(**match), tuple(_parse_actions(actions, line)))  # type: ignore[arg-type]


def _match_field(key: str, value: str, line: str) -> dict[str, int | str]:
    """One token of the match as fields of :class:`Match`."""
    if not value and key in _PROTOCOLS:
        eth_type, protocol = _PROTOCOLS[key]
        return {"eth_type": eth_type} if protocol is None else {"eth_type": eth_type, "ip_proto": protocol}
    if key == "nw_dst" and _ADDRESS.fullmatch(value):
        return {"ipv4_dst": value}
    if key in {"in_port", "nw_proto", "dl_type"}:
        name = {"in_port": "in_port", "nw_proto": "ip_proto", "dl_type": "eth_type"}[key]
        return {name: _number(value, line)}
    raise DumpError(f"unknown field {key}={value} in the flow {line!r}")


def _parse_actions(text: str, line: str) -> list[Action]:
    if text == "drop":
        return []
    actions: list[Action] = []
    for token in text.split(","):
        kind, _, value = token.partition(":")
        if kind == "output":
            actions.append(Output(_number(value, line)))
        elif kind == "group":
            actions.append(ToGroup(_number(value, line)))
        elif kind == "CONTROLLER":
            actions.append(ToController())
        else:
            raise DumpError(f"unknown action {token} in the flow {line!r}: ours are output, group and CONTROLLER")
    return actions


def _parse_group(line: str) -> Group:
    head, *buckets = line.split(",bucket=")
    fields = dict(field.partition("=")[::2] for field in head.split(","))
    if fields.keys() != {"group_id", "type"} or fields["type"] != "all":
        raise DumpError(f"unknown kind of group {line!r}: ours have a group_id and type=all")
    return Group(_number(fields["group_id"], line), tuple(sorted(_bucket_port(bucket, line) for bucket in buckets)))


def _bucket_port(bucket: str, line: str) -> int:
    """The port of a bucket that does nothing but output, e.g. ``bucket_id:0,actions=output:3``."""
    found = re.fullmatch(r"(?:bucket_id:\d+,)?actions=output:(\d+)", bucket)
    if found is None:
        raise DumpError(f"unknown bucket {bucket!r} in the group {line!r}: ours have one output and nothing else")
    return int(found[1])


def _number(text: str, line: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise DumpError(f"{text!r} is no number in {line!r} (were names printed? use --no-names)") from None
