from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.igmp import Change, Record
from controller.membership import Membership, MembershipChange

G = "239.1.1.1"
JOIN = Record(Change.EXCLUDE, G)
LEAVE = Record(Change.INCLUDE, G)


def some(change: Change, *sources: str) -> Record:
    return Record(change, G, frozenset(sources))


def test_a_join_and_a_leave_change_the_members_and_repeats_do_not() -> None:
    membership = Membership()
    assert membership.apply("h1", JOIN) == MembershipChange(G, "h1", joined=True)
    assert membership.apply("h1", JOIN) is None
    assert membership.apply("h2", JOIN) == MembershipChange(G, "h2", joined=True)
    assert membership.groups() == {G: {"h1", "h2"}}
    assert membership.apply("h1", LEAVE) == MembershipChange(G, "h1", joined=False)
    assert membership.apply("h1", LEAVE) is None
    assert membership.groups() == {G: {"h2"}}


def test_a_group_without_members_is_gone() -> None:
    membership = Membership()
    membership.apply("h1", JOIN)
    membership.apply("h1", LEAVE)
    assert membership.groups() == {}


def test_a_leave_of_a_stranger_is_nothing() -> None:
    membership = Membership()
    assert membership.apply("h1", LEAVE) is None
    assert membership.groups() == {}


def test_a_host_that_wants_one_source_is_a_member_until_it_wants_none() -> None:
    membership = Membership()
    assert membership.apply("h1", some(Change.ALLOW, "10.0.0.1", "10.0.0.2")) == MembershipChange(G, "h1", joined=True)
    assert membership.apply("h1", some(Change.BLOCK, "10.0.0.1")) is None
    assert membership.groups() == {G: {"h1"}}
    assert membership.apply("h1", some(Change.BLOCK, "10.0.0.2")) == MembershipChange(G, "h1", joined=False)


def test_including_replaces_and_excluding_takes_everything() -> None:
    membership = Membership()
    membership.apply("h1", some(Change.INCLUDE, "10.0.0.1"))
    membership.apply("h1", some(Change.INCLUDE, "10.0.0.2"))
    assert membership.apply("h1", some(Change.BLOCK, "10.0.0.2")) == MembershipChange(G, "h1", joined=False)
    membership.apply("h1", some(Change.EXCLUDE, "10.0.0.3"))
    assert membership.apply("h1", some(Change.BLOCK, "10.0.0.1")) is None
    assert membership.groups() == {G: {"h1"}}


def test_blocking_without_membership_joins_nothing() -> None:
    membership = Membership()
    assert membership.apply("h1", some(Change.BLOCK, "10.0.0.1")) is None
    assert membership.groups() == {}


def test_groups_come_in_numerical_order() -> None:
    membership = Membership()
    for group in ("239.1.1.10", "239.1.1.9", "232.0.0.1"):
        membership.apply("h1", Record(Change.EXCLUDE, group))
    assert list(membership.groups()) == ["232.0.0.1", "239.1.1.9", "239.1.1.10"]


records = st.builds(
    Record,
    st.sampled_from(Change),
    st.sampled_from(["239.1.1.1", "239.1.1.2"]),
    st.frozensets(st.sampled_from(["10.0.0.1", "10.0.0.2"])),
)


@given(st.lists(st.tuples(st.sampled_from(["h1", "h2"]), records)))
def test_the_changes_add_up_to_the_groups(history: list[tuple[str, Record]]) -> None:
    membership = Membership()
    members: set[tuple[str, str]] = set()
    for host, record in history:
        change = membership.apply(host, record)
        if change is not None:
            assert ((change.group, change.host) in members) != change.joined, "only a real change is reported"
            (members.add if change.joined else members.discard)((change.group, change.host))
    assert members == {(group, host) for group, hosts in membership.groups().items() for host in hosts}
    assert all(membership.groups().values())
