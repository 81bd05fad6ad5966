"""Kernel settings that are the same for the whole machine: raised for as long as a run needs them, then put back.

They are sysctls, like ``net.core.wmem_default``, and parameters of kernel modules, as ``sch_htb/htb_hysteresis``.

A file remembers, for each one changed, the value it had and every value that we gave it; it is written before the
sysctl is, so a change is never forgotten. A value that somebody else has set since is theirs and stays.

The caller holds the ledger's lock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from experiments.errors import EnvironmentMissing


@dataclass(slots=True)
class Changed:
    """A sysctl that we changed: its value before, and every value that we gave it."""

    original: int
    ours: list[int] = field(default_factory=list)


class Sysctls:
    """The changed settings of this ``boot``, kept in ``file``. Sysctls are in ``root``, modules in ``modules``."""

    def __init__(self, file: Path, boot: str, root: Path, modules: Path) -> None:
        self._file = file
        self._boot = boot
        self._root = root
        self._modules = modules

    def raise_to(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """Raise each to at least the value wanted; the values that are now in force."""
        in_force = {}
        for name, value in wanted.items():
            current = self._read(name)
            if current < value:
                changed = self._changed()
                known = changed.get(name)
                if known is None or current not in (known.original, *known.ours):
                    known = changed[name] = Changed(current)  # what somebody else has set since is to come back
                known.ours.append(value)
                self._remember(changed)
                self._write(name, value)
            in_force[name] = max(current, value)
        return in_force

    def restore(self) -> list[str]:
        """Put all back and forget them; what was done, a line each."""
        done = []
        for name, one in self._changed().items():
            if not self._path(name).exists():
                continue  # its module has been unloaded
            current = self._read(name)
            if current in one.ours:
                self._write(name, one.original)
                done.append(f"set {name} back from {current} to {one.original}")
            elif current != one.original:
                done.append(f"left {name} at {current}: somebody else has changed it since")
        self._file.unlink(missing_ok=True)
        return done

    def _changed(self) -> dict[str, Changed]:
        try:
            plain = json.loads(self._file.read_text(encoding="utf-8"))
            if plain["boot"] != self._boot:
                return {}  # the machine has started since, with its own values
            return {name: Changed(**one) for name, one in plain["values"].items()}
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return {}

    def _remember(self, changed: Mapping[str, Changed]) -> None:
        draft = self._file.with_name(f".{self._file.name}.part")
        values = {name: asdict(one) for name, one in changed.items()}
        draft.write_text(json.dumps({"boot": self._boot, "values": values}), encoding="utf-8")
        draft.replace(self._file)

    def _path(self, name: str) -> Path:
        module, is_parameter, parameter = name.partition("/")
        if is_parameter:
            return self._modules / module / "parameters" / parameter
        return self._root / name.replace(".", "/")

    def _read(self, name: str) -> int:
        try:
            return int(self._path(name).read_text())
        except FileNotFoundError:
            raise EnvironmentMissing(f"{_kind(name)} {name}: this kernel does not have it") from None

    def _write(self, name: str, value: int) -> None:
        try:
            self._path(name).write_text(f"{value}\n")
        except OSError as problem:
            raise EnvironmentMissing(f"{_kind(name)} {name}: cannot be set to {value} ({problem.strerror})") from None


def _kind(name: str) -> str:
    return "module parameter" if "/" in name else "sysctl"
