from __future__ import annotations

import pytest

from controller.dumps import DumpError, parse_flows, parse_groups, parse_rules
from controller.rules import Flow, Group, Match, Output, SwitchRules, ToController, ToGroup

# As Open vSwitch 3.1 printed them.
FLOWS = """\
OFPST_FLOW reply (OF1.3) (xid=0x2):
 cookie=0x0, duration=0.263s, table=0, n_packets=0, n_bytes=0, priority=400,ip,in_port=1,nw_proto=2 actions=CONTROLLER:65535
 cookie=0x0, duration=0.247s, table=0, n_packets=7, n_bytes=420, priority=300,ip,nw_proto=2 actions=drop
 cookie=0x0, duration=0.226s, table=0, n_packets=0, n_bytes=0, priority=200,ip,nw_dst=239.1.1.1 actions=group:1
 cookie=0x0, duration=0.206s, table=0, n_packets=0, n_bytes=0, priority=200,ip,nw_dst=239.1.1.2 actions=output:2
 cookie=0x0, duration=0.186s, table=0, n_packets=0, n_bytes=0, idle_age=3, priority=100,ip,nw_dst=10.0.0.2 actions=output:3
 cookie=0x0, duration=0.006s, table=0, n_packets=0, n_bytes=0, priority=0 actions=drop
"""  # noqa: E501
GROUPS = """\
OFPST_GROUP_DESC reply (OF1.3) (xid=0x2):
 group_id=2,type=all
 group_id=1,type=all,bucket=actions=output:10,bucket=actions=output:2
"""
IPV4 = 0x0800


def flow(body: str) -> str:
    return f" cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, {body}\n"


def test_both_dumps_together_are_the_rules_of_a_switch() -> None:
    assert parse_rules(FLOWS, GROUPS) == SwitchRules(
        frozenset(
            {
                Flow(400, Match(eth_type=IPV4, ip_proto=2, in_port=1), (ToController(),)),
                Flow(300, Match(eth_type=IPV4, ip_proto=2), ()),
                Flow(200, Match(eth_type=IPV4, ipv4_dst="239.1.1.1"), (ToGroup(1),)),
                Flow(200, Match(eth_type=IPV4, ipv4_dst="239.1.1.2"), (Output(2),)),
                Flow(100, Match(eth_type=IPV4, ipv4_dst="10.0.0.2"), (Output(3),)),
                Flow(0, Match(), ()),
            }
        ),
        frozenset({Group(2, ()), Group(1, (2, 10))}),
    )


def test_names_of_protocols_are_their_numbers() -> None:
    assert parse_flows(flow("priority=5,igmp,in_port=1 actions=drop")) == parse_flows(
        flow("priority=5,ip,in_port=1,nw_proto=2 actions=drop")
    )
    (udp,) = parse_flows(flow("priority=5,udp,nw_dst=10.0.0.1 actions=output:1"))
    assert udp.match == Match(IPV4, 17, "10.0.0.1")
    (arp,) = parse_flows(flow("priority=5,arp actions=output:1,output:2"))
    assert arp == Flow(5, Match(0x0806), (Output(1), Output(2)))
    (lldp,) = parse_flows(flow("priority=5,dl_type=0x88cc actions=drop"))
    assert lldp.match == Match(0x88CC)


def test_the_default_priority_is_not_printed() -> None:
    (found,) = parse_flows(flow("ip actions=drop"))
    assert found.priority == 32768


def test_a_bucket_with_its_number_is_read() -> None:
    text = " group_id=3,type=all,bucket=bucket_id:0,actions=output:4,bucket=bucket_id:1,actions=output:5"
    assert parse_groups(text) == {Group(3, (4, 5))}


def test_a_port_twice_in_a_group_stays_twice() -> None:
    assert parse_groups(" group_id=3,type=all,bucket=actions=output:4,bucket=actions=output:4") == {Group(3, (4, 4))}


def test_nothing_is_nothing() -> None:
    assert parse_rules("OFPST_FLOW reply (OF1.3) (xid=0x2):\n", "\n") == SwitchRules()


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("priority=5,ip,nw_dst=10.0.0.0/24 actions=output:3", "unknown field nw_dst=10.0.0.0/24"),
        ("priority=5,ip,nw_src=10.0.0.1 actions=output:3", "unknown field nw_src=10.0.0.1"),
        ("priority=5,in_port=2 actions=NORMAL", "unknown action NORMAL"),
        ("priority=5,ip actions=IN_PORT,output:3", "unknown action IN_PORT"),
        ("priority=5,ip actions=goto_table:1", "unknown action goto_table:1"),
        ('priority=5,ip actions=output:"e00-eth1"', "is no number .*--no-names"),
        ('priority=5,in_port="e00-eth1" actions=drop', "is no number .*--no-names"),
        ("priority=5,in_port=LOCAL actions=drop", "'LOCAL' is no number"),
        ("idle_timeout=60, priority=5,ip actions=drop", "unknown field idle_timeout=60"),
        ("priority=5,udp6 actions=drop", "unknown field udp6="),
        ("priority=5,ip", "no actions"),
    ],
)
def test_a_flow_that_cannot_be_ours_is_an_error(body: str, complaint: str) -> None:
    with pytest.raises(DumpError, match=complaint):
        parse_flows(FLOWS + flow(body))


def test_another_table_is_an_error() -> None:
    with pytest.raises(DumpError, match="table 1 in the flow"):
        parse_flows(flow("priority=5 actions=drop").replace("table=0", "table=1"))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("group_id=1,type=select,bucket=actions=output:1", "unknown kind of group"),
        ("group_id=1,type=all,selection_method=hash", "unknown kind of group"),
        ("group_id=1,type=all,bucket=watch_port:1,actions=output:1", "unknown bucket"),
        ("group_id=1,type=all,bucket=actions=output:1,output:2", "unknown bucket"),
        ("group_id=1,type=all,bucket=actions=drop", "unknown bucket"),
        ("OFPT_ERROR (OF1.3) (xid=0x6): OFPBRC_BAD_TYPE", "unknown kind of group"),
    ],
)
def test_a_group_that_cannot_be_ours_is_an_error(line: str, complaint: str) -> None:
    with pytest.raises(DumpError, match=complaint):
        parse_groups(GROUPS + " " + line)
