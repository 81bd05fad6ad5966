"""All of Scapy's classes: the extended transport headers that Scapy's RoCE layer lacks, bound on top of its BTH.

BTH, its ICRC and AETH come from ``scapy.contrib.roce``. Added here: DETH, RETH and ImmDt (IBTA vol. 1, 9.3.3, 9.3.4
and 9.3.6), and AETH in the three READ responses that carry it. Which header follows which depends on BTH's opcode
(table 38).
"""

from __future__ import annotations

from scapy.contrib.roce import AETH, BTH
from scapy.fields import IntField, XBitField, XByteField, XIntField, XLongField
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw, bind_layers

from endpoints.core.layout import AETH_OPCODES, IMM_OPCODES, RETH_OPCODES
from endpoints.core.packets import Opcode

__all__ = ["AETH", "BTH", "DETH", "IP", "RETH", "UDP", "Ether", "ImmDt", "Raw"]


class ImmDt(Packet):
    """Immediate extended transport header: 4 bytes handed to the receiver's completion."""

    name = "ImmDt"
    fields_desc = [XIntField("data", 0)]


class _BeforeImmediate(Packet):
    """A header that an immediate follows where BTH's opcode says so."""

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        bth = self.underlayer
        return ImmDt if isinstance(bth, BTH) and bth.opcode in IMM_OPCODES else Raw


class DETH(_BeforeImmediate):
    """Datagram extended transport header: Q_Key and the source queue pair."""

    name = "DETH"
    fields_desc = [XIntField("qkey", 0), XByteField("reserved", 0), XBitField("srcqp", 0, 24)]


class RETH(_BeforeImmediate):
    """RDMA extended transport header: where to read or write, with which key, how many bytes."""

    name = "RETH"
    fields_desc = [XLongField("va", 0), XIntField("rkey", 0), IntField("dmalen", 0)]


bind_layers(BTH, DETH, opcode=int(Opcode.UD_SEND_ONLY_IMM))
for _opcode in sorted(RETH_OPCODES):
    bind_layers(BTH, RETH, opcode=int(_opcode))
for _opcode in sorted(AETH_OPCODES - {Opcode.RC_ACKNOWLEDGE}):  # ACKNOWLEDGE is bound by scapy.contrib.roce
    bind_layers(BTH, AETH, opcode=int(_opcode))
for _opcode in sorted(IMM_OPCODES - RETH_OPCODES - {Opcode.UD_SEND_ONLY_IMM}):
    bind_layers(BTH, ImmDt, opcode=int(_opcode))
