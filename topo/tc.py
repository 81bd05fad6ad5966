"""Many lines for ``ip`` or ``tc`` in one process, here or in the namespace of a process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any

TIMEOUT_S = 60.0


class BatchError(RuntimeError):
    """The program refused a line, did not answer, or is not there."""


def inside(pid: int | None, command: Sequence[str]) -> list[str]:
    """The command as run in the namespaces of process ``pid`` (Mininet's ``mnexec``); None: here."""
    return list(command) if pid is None else ["mnexec", "-a", str(pid), *command]


def run(pid: int | None, *command: str, text: str = "") -> str:
    """Standard output of a command in a namespace; :class:`BatchError` with its complaint if it fails."""
    asked = " ".join(command)
    try:
        done = subprocess.run(
            inside(pid, command), input=text, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
    except FileNotFoundError as problem:
        raise BatchError(f"{asked}: {problem.filename}: {problem.strerror}") from None
    except subprocess.TimeoutExpired:
        raise BatchError(f"{asked}: no answer in {TIMEOUT_S:g} s") from None
    if done.returncode != 0:
        raise BatchError(f"{asked}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return done.stdout


def batch(program: str, lines: Iterable[str], pid: int | None = None) -> None:
    """Feed lines to ``ip -batch -`` or ``tc -batch -``."""
    text = "".join(f"{line}\n" for line in lines)
    if text:
        run(pid, program, "-batch", "-", text=text)


def qdiscs(pid: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """The kernel's qdiscs by interface."""
    table: dict[str, list[dict[str, Any]]] = {}
    for entry in json.loads(run(pid, "tc", "-j", "-d", "qdisc", "show") or "[]"):
        table.setdefault(entry["dev"], []).append(entry)
    return table


def classes(interface: str, pid: int | None = None) -> str:
    """The kernel's classes of an interface, as text."""
    return run(pid, "tc", "-d", "class", "show", "dev", interface)
