"""All measurements of ``make bench``, one module each; those that need a network are left out where one is not root."""

from __future__ import annotations

import argparse
import os

from experiments.bench.captures import bench_captures
from experiments.bench.collectives import bench_growth, bench_parts
from experiments.bench.failures import bench_failures
from experiments.bench.modes import bench_modes
from experiments.bench.offload import bench_offload
from experiments.bench.outstanding import bench_outstanding
from experiments.bench.receive import bench_receive_path, received_frames
from experiments.bench.workers import bench_workers


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench", description="Measure the costs and parts of the limit.")
    parser.add_argument("--passes", type=int, default=7, help="passes over 3840 packets per figure (default 7)")
    parser.add_argument("--iterations", type=int, default=5, help="operations per collective (default 5; 0: none)")
    given = parser.parse_args()
    bench_receive_path(max(1, given.passes))
    bench_workers(max(1, given.passes))
    if os.geteuid() == 0:
        bench_offload(max(1, given.passes))
    bench_captures(received_frames())
    if given.iterations > 0 and os.geteuid() == 0:
        bench_parts(given.iterations)
        bench_modes(given.iterations)
        bench_outstanding()
        bench_growth(given.iterations)
        bench_failures(given.iterations)


if __name__ == "__main__":
    main()
