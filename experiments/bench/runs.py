"""Runs of the real command for ``make bench``, each a process of its own with a folder of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def treecast(*arguments: str) -> str:
    """What ``treecast`` says on its standard output; RuntimeError with its words if it fails."""
    command = [sys.executable, "-m", "experiments.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


@contextmanager
def finished_run(*arguments: str) -> Iterator[Path]:
    """The result folder of ``treecast run``, as long as the context lasts; RuntimeError with its words if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        treecast("run", *arguments, "--output", folder)
        yield Path(folder) / "latest"
