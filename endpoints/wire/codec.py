"""Between the protocol's packet values and the bytes on the wire: the face of this folder.

It is handed Scapy's templates as bytes and imports no Scapy, so that it runs wherever frames do, virtual time included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from endpoints.core import layout
from endpoints.core.communicator import Communicator
from endpoints.core.packets import U8, Opcode, Outgoing, UdBurst, WriteBurst
from endpoints.wire.decode import Decoder
from endpoints.wire.encode import Encoder

Frame = bytes | U8
"""A whole frame, from the Ethernet header to the ICRC."""


class Codec:
    """Encodes what ``rank`` sends and decodes what reaches it; ``templates`` are those of ``wire.templates``."""

    def __init__(self, comm: Communicator, rank: int, templates: Mapping[Opcode, bytes]) -> None:
        if not 0 <= rank < comm.size:
            raise ValueError(f"rank {rank}: this communicator has 0 to {comm.size - 1}")
        encoder = Encoder(comm, rank, templates)
        self.encode_burst = encoder.encode_burst
        self.encode_write = encoder.encode_write
        self.encode_rc = encoder.encode_rc
        self.decode = Decoder(comm, rank, templates).decode

    def encode(self, packet: Outgoing) -> Sequence[Frame]:
        """The frames of whatever the protocol has to send."""
        if isinstance(packet, UdBurst):
            return self.encode_burst(packet)
        if isinstance(packet, WriteBurst):
            return self.encode_write(packet)
        return [self.encode_rc(packet)]


def stack(frames: Sequence[Frame], mtu: int) -> tuple[U8, npt.NDArray[np.int64]]:
    """Copy single frames into what ``decode`` takes: rows that hold the longest frame of ``mtu``, and lengths."""
    width = max([layout.max_frame_length(mtu), *map(len, frames)])
    rows = np.zeros((len(frames), width), np.uint8)
    for row, frame in zip(rows, frames, strict=True):
        row[: len(frame)] = np.frombuffer(frame, np.uint8)
    return rows, np.array([len(frame) for frame in frames], np.int64)
