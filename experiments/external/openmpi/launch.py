"""How Open MPI is started over emulated hosts, as text: all of them are one machine, which it must not notice.

``mpirun`` (by the name that tells it from other MPIs') runs on the first host and reaches the others by a remote shell
of ours, which enters the host's network namespace and gives it a host name of its own. Every byte between ranks goes by
TCP over the fabric: shared memory and what else this machine could offer is left out. Apart from that everything is as
Open MPI chooses by itself.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.external.site import Place

FABRIC = "10.0.0.0/8"
"""The addresses of all hosts, by which Open MPI finds each host's interface."""

COMMON = {
    "btl": "tcp,self",
    "pml": "ob1",
    "btl_tcp_if_include": FABRIC,
    "oob_tcp_if_include": FABRIC,
    "hwloc_base_binding_policy": "none",
    # Ranks wait by polling. On hosts with cores of their own that costs nothing; here it would take the CPU from the
    # switches, so a rank with nothing to do gives way.
    "mpi_yield_when_idle": "1",
}
"""MCA parameters of every run."""

NICENESS = 5
"""Lets the switches go first where ranks poll all the same; makes Open MPI faster by about a tenth."""


def command(folder: Path, places: Sequence[Place], parameters: Mapping[str, str], program: Sequence[str]) -> list[str]:
    """The command that runs ``program`` on every host; files of ours are in ``folder``.

    ``mpirun`` enters the first host by the same way by which it reaches the others.
    """
    remote_shell = ["sh", str(agent_path(folder))]
    local = {"plm_rsh_agent": " ".join(remote_shell), "orte_tmpdir_base": str(folder)}
    options = [word for name, value in {**COMMON, **local, **parameters}.items() for word in ("--mca", name, value)]
    mpirun = [
        *("mpirun.openmpi", "--allow-run-as-root", "--np", str(len(places)), "--hostfile", str(hostfile_path(folder))),
        *options,
        *program,
    ]
    return [*remote_shell, places[0].ip, shlex.join(mpirun)]


def hostfile_path(folder: Path) -> Path:
    """Where :func:`hostfile` goes."""
    return folder / "hosts"


def agent_path(folder: Path) -> Path:
    """Where :func:`agent` goes."""
    return folder / "agent"


def hostfile(places: Sequence[Place]) -> str:
    """One rank on each host, in their order. Addresses, so that no name is looked up."""
    return "".join(f"{place.ip} slots=1\n" for place in places)


def agent(places: Sequence[Place]) -> str:
    """The remote shell, called as ``agent HOST COMMAND...``: runs the command on that host, under the host's name."""
    cases = "".join(f"{place.ip}) pid={place.pid} name={shlex.quote(place.name)} ;;\n" for place in places)
    return f"""case $1 in
{cases}*) echo "no emulated host has the address $1" >&2; exit 255 ;;
esac
shift
exec nice -n {NICENESS} mnexec -a "$pid" unshare --uts sh -c '
echo "$1" >/proc/sys/kernel/hostname
shift
exec sh -c "$*"' sh "$name" "$@"
"""
