"""Names of hosts and links as users write them: a host is ``h3`` or its rank ``2``, a link is ``e00-a00``."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.errors import UserError
from topo.fabric import Fabric, FabricError, Host


def host_name(fabric: Fabric, by_rank: Sequence[Host], text: str, what: str) -> str:
    """The host that ``h3`` or the rank ``2`` names; ``by_rank`` has each rank's host, ``what`` is for the error."""
    if text in fabric.host:
        return text
    if text.isdecimal() and int(text) < len(by_rank):
        return by_rank[int(text)].name
    last = len(fabric.hosts)
    raise UserError(f"{what} {text!r}: no such host, {fabric.topology} has h1 to h{last} (ranks 0 to {last - 1})")


def capture_target(fabric: Fabric, by_rank: Sequence[Host], text: str) -> str:
    """A host as :func:`host_name` takes it, or a link written ``e00-a00``; returned with the fabric's names."""
    one, dash, other = text.partition("-")
    if not dash:
        return host_name(fabric, by_rank, text, "capture")
    try:
        link = fabric.link_between(one, other)
    except FabricError:
        near = ", ".join(f"{one}-{peer}" for peer in sorted(fabric.port_to.get(one, {}))[:4])
        raise UserError(f"capture {text!r}: no such link" + (f"; {one} has {near}, ..." if near else "")) from None
    return f"{link.a}-{link.b}"
