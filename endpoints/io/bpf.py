"""Classic BPF programs for sockets: which frames the kernel lets through (linux/filter.h)."""

from __future__ import annotations

import ctypes
import socket
import struct
from typing import Final

from endpoints.core.communicator import WORKER_SHIFT, WORKERS, Communicator
from endpoints.core.layout import BTH_QPN, ETHERTYPE, IP, IP_DST, IP_FRAGMENT, IP_LEN, IP_PROTOCOL, ROCE_PORT, UDP_DPORT

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand."""
Program = tuple[Instruction, ...]

_SO_ATTACH_FILTER: Final = 26

_LOAD_WORD: Final = 0x20
_LOAD_HALF: Final = 0x28
_LOAD_BYTE: Final = 0x30
_LOAD_HALF_INDEXED: Final = 0x48
_LOAD_BYTE_INDEXED: Final = 0x50
_INDEX_IS_IP_LENGTH: Final = 0xB1
_SHIFT_RIGHT: Final = 0x74
_IF_EQUAL: Final = 0x15
_IF_BITS: Final = 0x45
_RETURN: Final = 0x06

_REJECT: Final[Instruction] = (_RETURN, 0, 0, 0)
_ACCEPT: Final[Instruction] = (_RETURN, 0, 0, 0xFFFFFFFF)

REJECT_ALL: Final[Program] = (_REJECT,)

_UNLESS_ROCE: Final[Program] = (
    (_LOAD_HALF, 0, 0, ETHERTYPE),
    (_IF_EQUAL, 0, 7, 0x0800),
    (_LOAD_BYTE, 0, 0, IP_PROTOCOL),
    (_IF_EQUAL, 0, 5, socket.IPPROTO_UDP),
    (_LOAD_HALF, 0, 0, IP_FRAGMENT),
    (_IF_BITS, 3, 0, 0x1FFF),  # a later fragment has no UDP header
    (_INDEX_IS_IP_LENGTH, 0, 0, IP),
    (_LOAD_HALF_INDEXED, 0, 0, UDP_DPORT - IP_LEN),
    (_IF_EQUAL, 1, 0, ROCE_PORT),
    _REJECT,
)
"""Goes on for IPv4 datagrams to UDP port 4791, whatever the length of the IP header, which is in the index."""

ROCE_ONLY: Final[Program] = (*_UNLESS_ROCE, _ACCEPT)


def addressed_to(comm: Communicator) -> Program:
    """What a rank in ``comm`` receives: all RoCE; a worker, frames to its queue pairs, and multicast to its trees.

    The other workers of the NIC have the same addresses and a ring each, so that none wakes for what is another's.
    """
    if comm.workers == 1:
        return ROCE_ONLY
    trees = (((_IF_EQUAL, 0, 1, group.ip), _ACCEPT) for group in comm.groups)
    return (
        *_UNLESS_ROCE,
        (_LOAD_BYTE_INDEXED, 0, 0, BTH_QPN - IP_LEN),
        (_SHIFT_RIGHT, 0, 0, WORKER_SHIFT - 16),
        (_IF_EQUAL, 0, 1, comm.worker),
        _ACCEPT,
        (_IF_EQUAL, 1, 0, WORKERS),  # the bits with which the queue pair of all multicast begins
        _REJECT,
        (_LOAD_WORD, 0, 0, IP_DST),
        *(instruction for tree in trees for instruction in tree),
        _REJECT,
    )


def attach(sock: socket.socket, program: Program) -> None:
    """Let ``sock`` receive only what ``program`` returns other than 0 for."""
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    memory = ctypes.create_string_buffer(code, len(code))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(memory)))
