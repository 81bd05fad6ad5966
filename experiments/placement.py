"""Which host runs which rank: the one place where the ranks of a collective and the hosts of a fabric meet.

Hosts are numbered depth first (:mod:`topo.fabric`). *Contiguous* placement gives rank ``r`` to host number ``r``:
neighbours in rank are neighbours in the fabric, the best that a ring can have. *Random* placement is what a scheduler
does that does not know the fabric.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

from topo.fabric import Fabric, Host

Placement = Literal["contiguous", "random"]


def hosts_by_rank(fabric: Fabric, placement: Placement, seed: int) -> tuple[Host, ...]:
    """The host of each rank, in the order of ranks.

    Random placement orders hosts by a hash of (seed, name): every order is as likely as any other, and the same seed
    gives the same one anywhere, whatever else a run draws.
    """
    if placement == "contiguous":
        return fabric.hosts
    return tuple(sorted(fabric.hosts, key=lambda host: sha256(f"placement/{seed}/{host.name}".encode()).digest()))
