"""The texts of the kernel, tc and ss, as they came from a run."""

from __future__ import annotations

from experiments.fidelity.samples import (
    Schedule,
    Totals,
    Watched,
    parse_queue_drops,
    parse_schedule,
    parse_socket_drops,
    parse_waiting,
)

SS = """\
Netid State Recv-Q Send-Q Local Address:Port Peer Address:PortProcess
p_raw UNCONN 0      0                  *:e20-eth1             *     \
\t skmem:(r0,rb16777216,t0,tb134217728,f0,w0,o176,bl0,d0)
p_raw UNCONN 0      0                  *:e20-eth2             *     \
\t skmem:(r9024,rb16777216,t0,tb134217728,f0,w0,o176,bl0,d37)
p_raw UNCONN 0      0                  *                      *     \
\t skmem:(r0,rb16777216,t0,tb134217728,f0,w5,o176,bl0,d1)
"""

TC = """[{"kind":"htb","handle":"1:","dev":"e20-eth1","root":true,"options":{},"bytes":9,"packets":2,"drops":5,
"backlog":0,"qlen":0},{"kind":"pfifo","handle":"10:","dev":"e20-eth1","parent":"1:1","options":{},"bytes":9,"packets":2,"drops":5,
"backlog":0,"qlen":0},{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"options":{},"bytes":0,"packets":0,
"drops":0,"backlog":0,"qlen":0}]"""

PACKET = """\
sk               RefCnt Type Proto  Iface R Rmem   User   Inode
00000000a3b4c5d6 3      3    0003   4     1 81216  0      1234
00000000a3b4c5d7 3      3    0003   5     1 0      0      1235
00000000a3b4c5d8 3      3    0003   4     1 9024   0      1236
"""


def test_schedules_are_time_on_a_processor_and_time_without_one() -> None:
    assert parse_schedule("246806 1238850 2\n") == Schedule(ran_ns=246806, waited_ns=1238850)


def test_drops_of_sockets_are_told_by_their_interface() -> None:
    assert parse_socket_drops(SS) == {"e20-eth1": 0, "e20-eth2": 37}
    assert parse_socket_drops("") == {}


def test_drops_of_queues_are_counted_once_for_a_shaping_tree() -> None:
    assert parse_queue_drops(TC) == {"e20-eth1": 5, "lo": 0}
    assert parse_queue_drops("") == {}


def test_memory_that_waits_is_told_by_interface_and_the_fullest_socket_counts() -> None:
    assert parse_waiting(PACKET) == {4: 81216, 5: 0}
    assert parse_waiting("") == {}


def test_an_operation_is_the_difference_of_two_totals() -> None:
    before = Totals(
        at_ns=0,
        switching={"7": Schedule(10, 1), "8": Schedule(0, 0)},
        hosts={0: Schedule(0, 5), 1: Schedule(0, 5)},
        queue_drops={"e00-eth1": 4},
        socket_drops={"e00-eth1": 1},
    )
    after = Totals(
        at_ns=100,
        switching={"7": Schedule(80, 11), "9": Schedule(99, 0)},
        hosts={0: Schedule(0, 6), 1: Schedule(0, 25)},
        queue_drops={"e00-eth1": 6, "e00-eth2": 0},
        socket_drops={"e00-eth1": 1, "e00-eth2": 3},
    )
    seen = Watched(before, after, {}, 3)
    assert seen.switching == Schedule(70, 10), "threads that came or went meanwhile say nothing"
    assert seen.host_waited_ns == 20
    assert (seen.queue_drops, seen.socket_drops) == ({"e00-eth1": 2}, {"e00-eth2": 3})


def test_a_kernel_that_tells_nothing_is_no_error() -> None:
    seen = Watched(Totals(0), Totals(9), {}, 0)
    assert (seen.switching, seen.host_waited_ns, seen.queue_drops) == (None, 0, {})


def test_another_process_that_switches_is_noticed() -> None:
    assert Watched(Totals(0, switches=7), Totals(9, switches=8), {}, 0).replaced
    assert not Watched(Totals(0, switches=7), Totals(9, switches=7), {}, 0).replaced


def test_what_faults_on_links_drop_is_counted_for_each_operation():
    before = Totals(0, injected_drops={"h1-eth0": 3, "e00-eth3": 1})
    after = Totals(1, injected_drops={"h1-eth0": 5, "e00-eth3": 1, "h2-eth0": 4})
    assert Watched(before, after, {}, 0).injected_drops == {"h1-eth0": 2, "h2-eth0": 4}
