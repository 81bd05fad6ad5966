"""One rank's protocol endpoint: queue pairs, operations under way, pacing. Sans-I/O; driven by ``pump`` alone.

``start``, ``receive`` and ``handle_timer`` put something in; after any of them ``transmit`` until it gives nothing,
``next_event`` until None, ``next_timeout`` once. An endpoint is a function of its configuration and its timed inputs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b

from endpoints.core import messages
from endpoints.core.bulk import BulkConnections, WriteArrived, WriteRefused, WriterLost
from endpoints.core.communicator import FRAME_OVERHEAD_UD, Communicator
from endpoints.core.config import ProtocolConfig, Timing
from endpoints.core.events import Event
from endpoints.core.messages import Kind, Message
from endpoints.core.operation import Operation, Services
from endpoints.core.operations import Operations
from endpoints.core.pacing import Pacer
from endpoints.core.packets import U8, Batch, Chunks, Outgoing, RcPacket, Reth, WriteBurst
from endpoints.core.queue_pair import QueuePair
from endpoints.core.requester import PeerLost, ReadData, ReadRefused
from endpoints.core.responder import MessageArrived
from endpoints.core.serial import PSN_MASK
from endpoints.core.states import FINAL, Phase

MakeOperation = Callable[[Services, int], Operation]


def first_psn(seed: int, sender: int, receiver: int) -> int:
    """The PSN that a connection's direction starts at; known to both ends (IBTA leaves the exchange to the CM)."""
    digest = blake2b(f"{seed}/{sender}/{receiver}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") & PSN_MASK


class Endpoint:
    """The endpoint of ``rank``. ``first_op`` numbers the first operation; every rank must use the same."""

    def __init__(
        self, comm: Communicator, rank: int, config: ProtocolConfig | None = None, seed: int = 0, first_op: int = 1
    ) -> None:
        self.comm = comm
        self.rank = rank
        self.config = config or ProtocolConfig()
        self.timing = Timing.of(comm, self.config)
        self.counters: Counter[str] = Counter()
        self.heard_at = 0
        self.lossy = False
        """Whether packets were lost in this operation or the one before it: messages then go out twice, since one that
        is lost holds everybody up for a timeout, and costs next to nothing."""
        self._lost_at_start = [0, 0]
        self._seed = seed
        self._operations = Operations(first_op, comm.chunk_bits)
        self._pairs: dict[int, QueuePair] = {}
        self._active: dict[int, QueuePair] = {}
        """Pairs that may have something to send."""
        self._bulk = BulkConnections(comm.mtu, self._psns, self.timing, self._memory, self.counters)
        self._unreachable: deque[int] = deque()
        self._uplink = Pacer(comm.rate_bps, self.timing.uplink_ns)
        self._backlog = False
        self.more = False
        """Whether :meth:`transmit` stopped at its budget and not for want of anything to send."""
        self._bursts: deque[Outgoing] = deque()
        self._events: deque[Event] = deque()

    # -- inputs -------------------------------------------------------------------------------------------------

    def start(self, make: MakeOperation, now: int) -> Operation:
        """Prepare and begin the next operation at once."""
        operation = self.prepare(make)
        self.begin(now, operation.op)
        return operation

    def prepare(self, make: MakeOperation, op: int | None = None) -> Operation:
        """Have an operation ready to :meth:`begin`, beside those under way.

        Its number is ``op``, or the next one. What costs time (buffers, bitmaps, the own block in its place) is done
        here, before the barrier, as with the persistent collectives of MPI 4.
        """
        number = self._operations.number(op)
        self._lost_at_start = [self._lost_at_start[1], self._losses]
        operation = make(self, number)
        self._operations.add(operation)
        return operation

    def begin(self, now: int, op: int | None = None) -> None:
        """Arrive at the barrier with operation ``op``, or the one that was prepared last.

        It waits where an operation is in the way whose chunks could be taken for its own (``Operations.wait``).
        """
        number = self._operations.last_prepared if op is None else op
        if not self._operations.wait(number):
            self._arrive(number, now)
        self._settle(now)

    def _arrive(self, op: int, now: int) -> None:
        for peer, message in self._operations.begun(op, now):
            self._deliver(peer, message, now)

    def drop(self, op: int) -> None:
        """Have done with operation ``op`` where it is: its buffers are not touched any more, and no peer is told."""
        self._operations.drop(op)

    def receive(self, batch: Batch, now: int) -> None:
        """Take a batch of frames as the wire decoded it."""
        if batch.rejected:
            self.counters.update(batch.rejected)
        if batch.chunks is not None or batch.writes is not None or batch.rc:
            self.heard_at = now
        if batch.chunks is not None and len(batch.chunks):
            self.counters["chunks_received"] += len(batch.chunks)
            self._distribute(batch.chunks, now)
            self._hear(batch.chunks, now)
        if batch.writes is not None:
            self.counters["writes_received"] += len(batch.writes)
            self._bulk.receive(batch.writes, now)
        for packet in batch.rc:
            self.counters["rc_received"] += 1
            reason = self._bulk.on_ack(packet, now) if packet.bulk else self._receive_control(packet, now)
            if reason is not None:
                self.counters[f"rc_{reason}"] += 1
        self._drain_bulk(now)
        if batch.rc:
            for operation in self._operations.under_way():
                operation.after_batch()
        self._note_losses()
        self._settle(now)

    def _distribute(self, chunks: Chunks, now: int) -> None:
        taken = 0
        for operation, its in self._operations.split(chunks):
            taken += len(its)
            operation.on_chunks(its, now)
        if taken < len(chunks):
            self.counters["stale_operation"] += len(chunks) - taken

    def _receive_control(self, packet: RcPacket, now: int) -> str | None:
        pair = self._pair(packet.peer)
        reason = pair.receive(packet, now)
        self._bulk.heard(packet.peer, now)
        self._drain(pair, now)
        return reason

    def handle_timer(self, now: int) -> None:
        """Time has come to ``next_timeout``; a spurious call is harmless."""
        self._bulk.handle_timer(now)
        self._drain_bulk(now)
        for pair in list(self._pairs.values()):
            due = pair.next_timeout()
            if due is not None and due <= now:
                self._active[pair.peer] = pair
                pair.handle_timer(now)
                self._drain(pair, now)
        for operation in self._operations.under_way():
            operation.handle_timer(now)
        self._settle(now)

    # -- outputs ------------------------------------------------------------------------------------------------

    def transmit(self, now: int, budget: int) -> list[Outgoing]:
        """At most about ``budget`` frames to send now, control before recovery before multicast."""
        out: list[Outgoing] = []
        frames = 0
        self._backlog = False
        while frames < budget:
            item = self._next_control(now)
            if item is None and self._uplink.ready_at() > now:
                self._backlog = True
                break
            item = item or self._next_data(now)
            if item is None:
                break
            out.append(item)
            frames += self._account(item, now)
        self.more = frames >= budget
        self._drain_bulk(now)
        self._settle(now)
        return out

    def _next_control(self, now: int) -> Outgoing | None:
        """Messages, requests and acknowledgements: few and short, and somebody waits for them."""
        for pair in self._active.values():
            packet = pair.next_control(now)
            if packet is not None:
                return packet
        return self._bulk.next_answer(now)

    def _next_data(self, now: int) -> Outgoing | None:
        for pair in self._active.values():
            packet = pair.next_response()
            if packet is not None:
                return packet
        self._active.clear()
        repeat = self._bulk.next_repeat()
        if repeat is not None:
            return repeat
        if not self._bursts:
            for operation in self._operations.under_way():
                self._bursts.extend(operation.due_bursts(now))
        return self._bursts.popleft() if self._bursts else None

    def _account(self, item: Outgoing, now: int) -> int:
        if isinstance(item, RcPacket):
            self.counters["rc_sent"] += 1
            self._uplink.spend(len(item.payload) + FRAME_OVERHEAD_UD, now)
            return 1
        if isinstance(item, WriteBurst):
            count = item.stop - item.first
            self.counters["writes_sent"] += count
            start, stop = item.first * self.comm.mtu, item.stop * self.comm.mtu
            self._uplink.spend(len(item.payload[start:stop]) + count * FRAME_OVERHEAD_UD, now)
            return count
        self.counters["chunks_sent"] += len(item.payloads)
        self._uplink.spend(sum(len(p) + FRAME_OVERHEAD_UD for p in item.payloads), now)
        return len(item.payloads)

    def next_event(self) -> Event | None:
        """What happened, in order."""
        return self._events.popleft() if self._events else None

    def next_timeout(self) -> int | None:
        """The absolute time (ns) at which :meth:`handle_timer` or :meth:`transmit` has something to do."""
        candidates = [pair.next_timeout() for pair in self._pairs.values()]
        operations = self._operations.under_way()
        candidates += [operation.next_timeout() for operation in operations]
        candidates.append(self._bulk.next_timeout())
        if self._operations.next_unobstructed() is not None:  # what was in the way has been dropped
            candidates.append(0)
        if self._backlog:
            candidates.append(self._uplink.ready_at() + self.timing.uplink_ns // 2)
        else:
            candidates += [operation.next_departure() for operation in operations]
        return min((at for at in candidates if at is not None), default=None)

    def missing_ns(self) -> int:
        """Nanoseconds in which what an operation lacks could arrive at the link's rate, and not sooner.

        In the barrier it lacks a message, which may come at any time.
        """
        missing = (0 if it.phase is Phase.BARRIER else it.missing_chunks for it in self._operations.under_way())
        return min(missing, default=0) * self.timing.chunk_ns

    def awaited_ns(self) -> int:
        """Nanoseconds of the link's time that the next piece to hand on takes; 0 where nobody waits for one."""
        awaited = (it.awaited_bytes for it in self._operations.under_way())
        return -(-min((size for size in awaited if size), default=0) // self.comm.mtu) * self.timing.chunk_ns

    @property
    def idle(self) -> bool:
        """Whether no message waits for its acknowledgement."""
        return not self._bursts and self._bulk.idle and all(pair.idle or pair.failed for pair in self._pairs.values())

    @property
    def retransmitted(self) -> int:
        """Requests of reliable connections that were sent again."""
        return sum(pair.retransmitted for pair in self._pairs.values()) + self._bulk.repeated

    # -- services for the operation -----------------------------------------------------------------------------

    def send(self, peer: int, message: Message) -> None:
        """Send a control message reliably."""
        pair = self._pair(peer)
        if pair.failed:
            self._unreachable.append(peer)
        else:
            pair.post_send(*message.encode(), copies=2 if self.lossy else 1)

    def read(self, op: int, peer: int, va: int, length: int, context: int) -> None:
        """READ ``length`` bytes at ``va`` of the buffer that ``peer`` exposes for operation ``op``."""
        pair = self._pair(peer)
        if pair.failed:
            self._unreachable.append(peer)
        else:
            pair.post_read(va, op, length, (op, context))

    def has_room(self, length: int) -> bool:
        """Whether a WRITE of so many bytes may be sent now."""
        return self._bulk.room(length)

    def write(self, op: int, peer: int, va: int, imm: int, payload: U8, now: int, *, ask: bool) -> WriteBurst:
        """A WRITE into the buffer that ``peer`` exposes for operation ``op``, to be sent at once."""
        return self._bulk.write(peer, Reth(va, op, len(payload)), imm, payload, now, ask=ask)

    def writes_acknowledged(self, op: int) -> bool:
        """Whether every WRITE of operation ``op`` has been acknowledged."""
        return self._bulk.acknowledged(op)

    # -- inside -------------------------------------------------------------------------------------------------

    @property
    def _losses(self) -> int:
        """Signs of lost packets so far."""
        return self.counters["overtaken"] + self.counters["missing_at_cutoff"] + self.counters["rc_out_of_sequence"]

    def _note_losses(self) -> None:
        self.lossy = self._losses > self._lost_at_start[0]

    def _hear(self, chunks: Chunks, now: int) -> None:
        """Whoever multicasts is alive, however long its answers take."""
        if any(not pair.idle for pair in self._pairs.values()):
            for peer in set(chunks.src.tolist()) & self._pairs.keys():
                self._pairs[peer].heard(now)

    def _pair(self, peer: int) -> QueuePair:
        """The queue pair towards ``peer``, which may have something to send after what is done with it now."""
        if peer not in self._pairs:
            self._pairs[peer] = QueuePair(peer, self.comm.mtu, self._psns(peer), self.timing, self.config, self._memory)
        pair = self._active[peer] = self._pairs[peer]
        return pair

    def _psns(self, peer: int) -> tuple[int, int]:
        """The first PSNs towards ``peer`` and from it."""
        return first_psn(self._seed, self.rank, peer), first_psn(self._seed, peer, self.rank)

    def _memory(self, rkey: int, va: int, length: int) -> U8 | None:
        operation = self._operations.of(rkey)
        return None if operation is None else operation.remote_view(va, length)

    def _drain(self, pair: QueuePair, now: int) -> None:
        while (event := pair.next_event()) is not None:
            match event:
                case MessageArrived(imm, payload):
                    message = messages.decode(imm, payload)
                    if message is None:
                        self.counters["bad_message"] += 1
                    else:
                        op = self._operations.unwrapped(message.op)
                        self._deliver(pair.peer, replace(message, op=op), now)
                case ReadData((op, context), index, data):
                    if (operation := self._operations.of(op)) is not None:
                        operation.on_read_data(pair.peer, context, index, data, now)
                case ReadRefused((op, context)):
                    if (operation := self._operations.of(op)) is not None:
                        operation.on_read_refused(pair.peer, context, now)
                case PeerLost():
                    self.counters["peers_lost"] += 1
                    self._unreachable.append(pair.peer)

    def _drain_bulk(self, now: int) -> None:
        while (event := self._bulk.next_event()) is not None:
            match event:
                case WriteArrived(peer, op, imm, size):
                    if (operation := self._operations.of(op)) is not None:
                        operation.on_write(peer, imm, size, now)
                case WriteRefused(peer, op):
                    if (operation := self._operations.of(op)) is not None:
                        operation.on_write_refused(peer, now)
                case WriterLost(peer):
                    self.counters["peers_lost"] += 1
                    self._unreachable.append(peer)
        for operation in self._operations.under_way():
            if operation.phase is Phase.HANDSHAKE:
                operation.on_acknowledged(now)

    def _deliver(self, peer: int, message: Message, now: int) -> None:
        if (operation := self._operations.of(message.op)) is not None:
            operation.on_message(peer, message, now)
        elif not self._operations.is_past(message.op):
            self._operations.keep(peer, message)
        elif message.kind is Kind.FETCH:
            self.send(peer, Message(Kind.GONE, message.op))
        else:
            self.counters["stale_message"] += 1

    def _settle(self, now: int) -> None:
        """Tell the operations of lost peers and of each other, and the owner of what they became."""
        while (op := self._operations.next_unobstructed()) is not None:
            self._arrive(op, now)
        started = self._operations.started()
        if not started:
            return
        while self._unreachable:
            peer = self._unreachable.popleft()
            for operation in started:
                if operation.phase not in FINAL:
                    operation.on_peer_lost(peer, now)
        self._operations.share_link(now)
        self._events.extend(self._operations.news())
        if self._operations.next_unobstructed() is not None:  # what was in the way has just ended
            self._settle(now)
