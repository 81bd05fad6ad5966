"""From what ranks and counters say to the verdict on one operation. Pure: nothing is measured here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from endpoints.core.packets import WRITE_OPCODES, Opcode
from experiments.results import Packets

REJECTIONS = (
    *("not_roce", "truncated", "bad_length", "bad_icrc", "unknown_opcode"),
    *("own", "unknown_peer", "wrong_destination", "unknown_qp"),
    *("stale_operation", "bad_chunk", "bad_message", "stale_message"),
)
UD_OPCODE = int(Opcode.UD_SEND_ONLY_IMM)
BULK_OPCODES = WRITE_OPCODES | {UD_OPCODE}
ARRIVALS = {"drop": -1, "corrupt": -1, "duplicate": 1}
"""How many more chunks arrive at each receiver of one that was struck."""
CUT_OFF_NS = 2_000_000_000
"""Ranks that are not cut off hear of each other more often than that while any of them lacks something: half the time
after which a peer is dead, and twice that for which a silent supplier is waited for."""
PHASES = ("barrier", "multicast", "transfer", "recovery", "handshake")


class RankReport(Protocol):
    """What ``endpoints.io.commands.RankResult`` says."""

    @property
    def rank(self) -> int: ...
    @property
    def phases(self) -> Sequence[tuple[str, int]]: ...
    @property
    def failure(self) -> tuple[str, int | None] | None: ...
    @property
    def counters(self) -> Mapping[str, int]: ...
    @property
    def ring_dropped(self) -> int: ...
    @property
    def heard_at(self) -> int: ...
    @property
    def hits(self) -> Sequence[tuple[Any, ...]]: ...
    @property
    def held(self) -> Mapping[tuple[Any, int], int]: ...
    @property
    def gone(self) -> str | None: ...
    @property
    def cpu_seconds(self) -> float: ...
    @property
    def application_cpu_seconds(self) -> float | None: ...


def seconds(reports: Sequence[RankReport]) -> float | None:
    """From the first rank's first barrier message to the last rank's last handshake; None if a rank did not finish."""
    if any(not report.phases or report.phases[-1][0] != "done" for report in reports):
        return None
    return (max(r.phases[-1][1] for r in reports) - min(r.phases[0][1] for r in reports)) / 1e9


def cpu_seconds(reports: Sequence[RankReport]) -> dict[str, float]:
    """Processor time of all ranks by who spent it: the endpoints, or NICs and the applications that use them."""
    spent = sum(report.cpu_seconds for report in reports)
    applications = [it.application_cpu_seconds for it in reports if it.application_cpu_seconds is not None]
    return {"nic": spent, "application": sum(applications)} if applications else {"endpoints": spent}


def phase_seconds(reports: Sequence[RankReport]) -> dict[str, list[float]]:
    """Seconds that each rank spent in each phase, ranks in order."""
    table = {phase: [0.0] * len(reports) for phase in PHASES}
    for report in reports:
        for (phase, begun), (_, ended) in zip(report.phases, report.phases[1:], strict=False):
            if phase in table:
                table[phase][report.rank] += (ended - begun) / 1e9
    return table


def packets(reports: Sequence[RankReport], expected: int | None) -> Packets:
    """Sums over the ranks, of multicast chunks and of packets of RDMA WRITEs.

    ``expected`` of them should have reached receivers; None for point-to-point: as many as were sent. What faults took
    away or added is not lost; a packet that several of them took counts for each. Nor is what they still hold back;
    what they had held back since an operation before arrived beside what this one sent.
    """
    total: Counter[str] = Counter()
    for report in reports:
        total.update(report.counters)
    sent = total["chunks_sent"] + total["writes_sent"]
    arrived = total["chunks_received"] + total["writes_received"]
    hits = Counter(
        (str(hit[0]), str(hit[1]), hit[3] == UD_OPCODE)
        for report in reports
        for hit in report.hits
        if hit[3] in BULK_OPCODES
    )
    receivers = {("rx", True): 1, ("rx", False): 1, ("tx", True): len(reports) - 1, ("tx", False): 1}
    faults = sum(ARRIVALS.get(kind, 0) * receivers[way, ud] * count for (way, kind, ud), count in hits.items())
    faults -= sum(
        receivers[way, opcode == UD_OPCODE] * count
        for report in reports
        for (way, opcode), count in report.held.items()
        if opcode in BULK_OPCODES
    )
    return Packets(
        sent=sent,
        received=arrived,
        duplicates=total["duplicates"],
        dropped_injected=sum(count for (_, kind, _), count in hits.items() if kind == "drop"),
        lost=max(0, (sent if expected is None else expected) + faults - arrived),
        ring_dropped=sum(report.ring_dropped for report in reports),
        recovered=total["recovered"],
        rejected={name: total[name] for name in REJECTIONS if total[name]},
    )


def injected(reports: Sequence[RankReport]) -> dict[str, int]:
    """Packets that impairments struck, by kind."""
    return dict(sorted(Counter(str(hit[1]) for report in reports for hit in report.hits).items()))


def diagnosis(reports: Sequence[RankReport], names: Mapping[int, str]) -> str | None:
    """One line for an operation that failed, naming the host at fault; None if nobody failed.

    A host whose endpoint has ended is at fault whatever anybody says, then one that received no frame at all while
    others did; else the rank that most accuse with reason.
    """
    failed = [report for report in reports if report.failure is not None]
    if not failed:
        return None
    gone = [f"{names[report.rank]} (rank {report.rank}) is missing: {report.gone}" for report in reports if report.gone]
    if gone:
        return f"{'; '.join(gone)}; {len(failed) - len(gone)} of the {len(reports) - len(gone)} others gave up"
    kinds = ("rc_received", "chunks_received", "writes_received")
    heard = {report.rank: sum(report.counters.get(kind, 0) for kind in kinds) for report in reports}
    deaf = [rank for rank, count in heard.items() if count == 0]
    if deaf and len(deaf) < len(reports):
        named = ", ".join(f"{names[rank]} (rank {rank})" for rank in deaf)
        return f"{named} received not a single packet; {len(failed)} of {len(reports)} ranks gave up"
    first = min(failed, key=lambda report: report.phases[-1][1] if report.phases else 0)
    assert first.failure is not None
    reason = f"{names[first.rank]} (rank {first.rank}): {first.failure[0]}"
    suspect = _suspect(failed, {report.rank: report for report in reports})
    return reason if suspect is None else f"{names[suspect]} (rank {suspect}) seems to be at fault; {reason}"


def _suspect(failed: Sequence[RankReport], by_rank: Mapping[int, RankReport]) -> int | None:
    """The rank that most accuse of themselves, not since others told them; of several, who was cut off first.

    Who accuses one that completed, or that still heard others when he had not for long, is cut off himself.
    """
    witnesses = [report for report in failed if not report.counters.get("told_to_give_up")] or failed
    votes: Counter[int] = Counter()
    for witness in witnesses:
        assert witness.failure is not None
        accused = witness.failure[1]
        if accused is not None:
            votes[witness.rank if _rather_himself(witness, by_rank[accused]) else accused] += 1
    return max(votes, key=lambda rank: (votes[rank], -by_rank[rank].heard_at), default=None)


def _rather_himself(witness: RankReport, accused: RankReport) -> bool:
    if accused.phases and accused.phases[-1][0] == "done":
        return True
    silent = witness.phases[-1][1] - witness.heard_at if witness.phases else 0
    return min(silent, accused.heard_at - witness.heard_at) >= CUT_OFF_NS


def complaints(reports: Sequence[RankReport], names: Mapping[int, str]) -> dict[str, str]:
    """What each rank that failed has to say, by host; whom it accuses is named."""
    found = {}
    for report in reports:
        if report.failure is not None:
            reason, suspect = report.failure
            accused = "" if suspect in (None, report.rank) else f"{names[suspect]} (rank {suspect}): "
            found[names[report.rank]] = f"{accused}{reason}"
    return found
