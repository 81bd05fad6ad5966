"""Who is in which group: the state that IGMP reports build up.

Every host has a switch port of its own, so a host's word is all there is to know about its port: a leave takes effect
at once, and no report is suppressed for another's. Nothing times out: a membership ends when the host says so, and
hosts are queried only when something may have been missed. A host whose link is down is left out of the tree, not out
of the group, since it will not report again of itself when the link is back.

The fabric forwards by group alone. A host that asks for some sources only (RFC 3376 section 3, RFC 4607) gets the group
from every sender as long as it wants any; its own kernel filters the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from controller.igmp import Change, Record

_EVERYTHING = None
"""The interest of a host that takes a group from every source, as opposed to a set of sources."""


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """``host`` is a member of ``group`` from now on (``joined``) or is no longer."""

    group: str
    host: str
    joined: bool


class Membership:
    """The members of every group."""

    def __init__(self) -> None:
        self._interest: dict[str, dict[str, frozenset[str] | None]] = {}

    def apply(self, host: str, record: Record) -> MembershipChange | None:
        """Take in what ``host`` says; the change that it makes to the members of the group, if any."""
        interests = self._interest.setdefault(record.group, {})
        before = interests.get(host, frozenset())
        after = _after(before, record)
        if after == frozenset():
            interests.pop(host, None)
        else:
            interests[host] = after
        if not interests:
            del self._interest[record.group]
        was, is_now = before != frozenset(), after != frozenset()
        return MembershipChange(record.group, host, joined=is_now) if was != is_now else None

    def remember(self, group: str, host: str) -> None:
        """``host`` was a member of ``group``, as others have told; from every source, as far as anybody knows."""
        self._interest.setdefault(group, {}).setdefault(host, _EVERYTHING)

    def groups(self) -> dict[str, frozenset[str]]:
        """The members of each group that has any, in numerical order of the groups' addresses."""
        return {group: frozenset(self._interest[group]) for group in sorted(self._interest, key=IPv4Address)}


def _after(before: frozenset[str] | None, record: Record) -> frozenset[str] | None:
    """A host's interest after a record (RFC 3376 section 6.4, with the exclude list taken as empty)."""
    if record.change is Change.EXCLUDE:
        return _EVERYTHING
    if record.change is Change.INCLUDE:
        return record.sources
    if before is _EVERYTHING:
        return _EVERYTHING
    return before | record.sources if record.change is Change.ALLOW else before - record.sources
