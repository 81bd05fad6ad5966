"""UFTP, which multicasts a file: the fabric's multicast as a program uses it that knows nothing of RoCE or of us."""

from __future__ import annotations

from contextlib import AbstractContextManager

from experiments.external.registry import External
from experiments.external.site import Program, Site
from experiments.external.uftp.session import session
from experiments.movement.bounds import ON_A_TREE


def start(site: Site) -> AbstractContextManager[Program]:
    """Receivers on every host but the first."""
    return session(site)


EXTERNAL = External(
    "uftp_broadcast",
    "broadcast",
    "UFTP multicasts a file over UDP",
    start,
    ("uftp", "uftpd"),
    multicast=True,
    bound=ON_A_TREE,
)
