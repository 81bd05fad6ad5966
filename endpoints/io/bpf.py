"""Classic BPF programs for sockets: which frames the kernel lets through (linux/filter.h)."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence
from typing import Final

from endpoints.core.layout import ETHERTYPE, IP, IP_FRAGMENT, IP_PROTOCOL, ROCE_PORT

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand."""

_SO_ATTACH_FILTER: Final = 26

_LOAD_HALF: Final = 0x28
_LOAD_BYTE: Final = 0x30
_LOAD_HALF_INDEXED: Final = 0x48
_INDEX_IS_IP_LENGTH: Final = 0xB1
_IF_EQUAL: Final = 0x15
_IF_BITS: Final = 0x45
_RETURN: Final = 0x06
_WHOLE_FRAME: Final = 0xFFFFFFFF

REJECT_ALL: Final[tuple[Instruction, ...]] = ((_RETURN, 0, 0, 0),)

ROCE_ONLY: Final[tuple[Instruction, ...]] = (
    (_LOAD_HALF, 0, 0, ETHERTYPE),
    (_IF_EQUAL, 0, 8, 0x0800),
    (_LOAD_BYTE, 0, 0, IP_PROTOCOL),
    (_IF_EQUAL, 0, 6, socket.IPPROTO_UDP),
    (_LOAD_HALF, 0, 0, IP_FRAGMENT),
    (_IF_BITS, 4, 0, 0x1FFF),  # a later fragment has no UDP header
    (_INDEX_IS_IP_LENGTH, 0, 0, IP),
    (_LOAD_HALF_INDEXED, 0, 0, IP + 2),
    (_IF_EQUAL, 0, 1, ROCE_PORT),
    (_RETURN, 0, 0, _WHOLE_FRAME),
    (_RETURN, 0, 0, 0),
)
"""IPv4 datagrams to UDP port 4791, whatever the length of the IP header."""


def attach(sock: socket.socket, program: Sequence[Instruction]) -> None:
    """Let ``sock`` receive only what ``program`` returns other than 0 for."""
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    memory = ctypes.create_string_buffer(code, len(code))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(memory)))
