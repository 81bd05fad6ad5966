# ruff: noqa: E501
"""Counter reports of the kernel and of Open vSwitch. The texts were taken from Linux 6.18 and OVS 3.1."""

from __future__ import annotations

from topo.counters import Counters, parse_datapath, parse_proc_net_dev

PROC_NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
e00-eth1:   10000     100    1    2    0     0          0         0      999       9    3    4    0     0       0          0
h27648-eth0:12345678901 7 0 0 0 0 0 0 8 1 0 0 0 0 0 0
"""

DPCTL = """\
netdev@ovs-netdev:
  lookups: hit:6 missed:3 lost:0
  flows: 3
  port 0: ovs-netdev (tap)
    RX packets:0 errors:0 dropped:0 overruns:0 frame:0
    TX packets:0 errors:0 dropped:0 aborted:0 carrier:0
    collisions:0
    RX bytes:0  TX bytes:0
  port 1: e00-eth1
    RX packets:10 errors:1 dropped:2 overruns:0 frame:0
    TX packets:3 errors:4 dropped:5 aborted:0 carrier:0
    collisions:0
    RX bytes:918  TX bytes:123456789 (117.7 MiB)
  port 2: e00 (internal)
    RX packets:0 errors:? dropped:? overruns:? frame:?
    TX packets:7 errors:? dropped:? aborted:? carrier:?
    collisions:?
    RX bytes:0  TX bytes:70
"""


def test_proc_net_dev_is_read_column_by_column() -> None:
    table = parse_proc_net_dev(PROC_NET_DEV)
    assert set(table) == {"lo", "e00-eth1", "h27648-eth0"}
    assert table["e00-eth1"] == Counters(
        rx_packets=100,
        rx_bytes=10_000,
        rx_errors=1,
        rx_dropped=2,
        tx_packets=9,
        tx_bytes=999,
        tx_errors=3,
        tx_dropped=4,
    )
    assert table["h27648-eth0"].rx_bytes == 12_345_678_901, "a long name leaves no blank before the first column"


def test_the_datapaths_ports_are_read_with_their_large_and_their_unknown_numbers() -> None:
    table = parse_datapath(DPCTL)
    assert set(table) == {"ovs-netdev", "e00-eth1", "e00"}
    assert table["e00-eth1"] == Counters(
        rx_packets=10,
        rx_bytes=918,
        rx_errors=1,
        rx_dropped=2,
        tx_packets=3,
        tx_bytes=123_456_789,
        tx_errors=4,
        tx_dropped=5,
    )
    assert table["e00"] == Counters(tx_packets=7, tx_bytes=70)


def test_difference_is_taken_of_every_counter() -> None:
    later, earlier = Counters(*range(10, 18)), Counters(*range(8))
    assert later - earlier == Counters(*[10] * 8)
