"""Runs of the real command for ``make bench``, each a process of its own with a folder of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def finished_run(*arguments: str) -> Iterator[Path]:
    """The result folder of ``treecast run``, as long as the context lasts; RuntimeError with its words if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "experiments.cli", "run", *arguments, "--output", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        yield Path(folder) / "latest"
