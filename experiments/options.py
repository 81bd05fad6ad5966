"""Options that several commands have, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Topology = Annotated[
    str | None,
    typer.Option(
        metavar="TOPOLOGY", help="fattree,k=4 or leafspine,leaves=4,spines=2,hosts=4; see `treecast topologies`."
    ),
]
Rate = Annotated[
    str | None, typer.Option(metavar="RATE", help="Rate of every link: 50M, 56G; a bare number is Mbit/s.")
]
Scale = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Links are shaped at bw / scale: --bw 56G --scale 1000.")
]
Size = Annotated[str | None, typer.Option(metavar="SIZE", help="Bytes per rank: 1MiB, 64KiB, 1000.")]
Mtu = Annotated[str | None, typer.Option(metavar="BYTES", help="RoCE path MTU: 256, 512, 1024, 2048, 4096.")]
Algorithms = Annotated[
    str | None, typer.Option(metavar="LIST", help="Comma-separated; `treecast algorithms` lists them.")
]
Placement = Annotated[
    str | None, typer.Option(metavar="KIND", help="Ranks on hosts: contiguous, or random (by the seed).")
]
Iterations = Annotated[str | None, typer.Option(metavar="NUMBER", help="Operations of each algorithm, interleaved.")]
Warmup = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Operations before those, verified but not counted.")
]
Seed = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="Of the data, of random placement, and of every injected fault."),
]
Trees = Annotated[str | None, typer.Option(metavar="NUMBER", help="Multicast trees that share the chunks (subgroups).")]
Offload = Annotated[
    str | None,
    typer.Option(metavar="WHERE", help="none: the host's process runs the protocol; nic: processes of a NIC do."),
]
Workers = Annotated[str | None, typer.Option(metavar="NUMBER", help="Workers of every NIC, with trees of their own.")]
Chains = Annotated[str | None, typer.Option(metavar="NUMBER", help="Roots that multicast at once; default: all.")]
Loss = Annotated[str | None, typer.Option(metavar="PERCENT", help="Loss at every receiver, like 1%.")]
Reorder = Annotated[str | None, typer.Option(metavar="PERCENT", help="Packets held back behind later ones, like 5%.")]
Name = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the result folder.")]
Output = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for results.")]
Plain = Annotated[bool, typer.Option("--plain", help="No moving lines, no colours.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the resolved scenario as YAML and stop.")]
