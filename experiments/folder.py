"""The folder of one experiment's results: ``results/<UTC time>-<scenario>/``, and ``results/latest`` beside it.

A file appears whole or not at all (written beside its place, then renamed). Run by sudo, everything belongs to the user
who called sudo. ``latest`` moves only once there is a summary to point at.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from experiments.errors import UserError

LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom new files are to belong to."""

    uid: int
    gid: int

    @classmethod
    def calling(cls, environ: Mapping[str, str]) -> Owner | None:
        """The user who called sudo; None without sudo, or where we are not root and cannot give files away."""
        uid, gid = environ.get("SUDO_UID", ""), environ.get("SUDO_GID", "")
        if os.geteuid() != 0 or not (uid.isdecimal() and gid.isdecimal()):
            return None
        return cls(int(uid), int(gid))


@dataclass(frozen=True, slots=True)
class ResultFolder:
    """A folder that exists and is ours to write. ``created`` are the folders above it that did not exist before."""

    path: Path
    owner: Owner | None = None
    created: tuple[Path, ...] = ()

    @classmethod
    def create(cls, base: Path, name: str, now: datetime, owner: Owner | None = None) -> ResultFolder:
        """Make ``base/<time of now>-<name>``, which must be UTC; a number is added where that exists already.

        :class:`UserError` where it cannot be written.
        """
        stem = f"{now:%Y%m%dT%H%M%SZ}-{name}"
        try:
            created = _make_parents(base)
            path = _make_new(base.resolve(), stem)
            folder = cls(path, owner, created)
            folder.logs.mkdir()
        except OSError as problem:
            raise UserError(
                f"output {str(base)!r}: cannot be written ({problem.strerror}); choose another folder with --output"
            ) from None
        folder.hand_over()
        return folder

    @property
    def logs(self) -> Path:
        """Where every part of the program leaves its log."""
        return self.path / "logs"

    def subfolder(self, name: str) -> Path:
        """A folder in it, made if need be."""
        path = self.path / name
        path.mkdir(exist_ok=True)
        self._give(path)
        return path

    def write(self, name: str, text: str) -> Path:
        """Write a text file, whole or not at all."""
        return self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, content: bytes) -> Path:
        """Write a file, whole or not at all."""
        path = self.path / name
        draft = path.with_name(f".{path.name}.part")
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        self._give(draft)
        draft.replace(path)
        return path

    def publish(self) -> None:
        """Point ``latest`` at this folder. A ``latest`` that is no link is somebody's own and stays."""
        latest = self.path.parent / LATEST
        if latest.exists() and not latest.is_symlink():
            return
        draft = latest.with_name(f".{LATEST}.{self.path.name}")
        with suppress(FileNotFoundError):
            draft.unlink()
        draft.symlink_to(self.path.name)
        self._give(draft)
        draft.replace(latest)

    def hand_over(self) -> None:
        """Give everything in it, whoever wrote it, to the owner."""
        for path in (*self.created, self.path, *self.path.rglob("*")):
            self._give(path)

    def discard_unused(self) -> bool:
        """Remove the folder if no file was written; whether it is gone."""
        if any(not path.is_dir() for path in self.path.rglob("*")):
            return False
        for path in (*sorted(self.path.rglob("*"), reverse=True), self.path, *reversed(self.created)):
            with suppress(OSError):  # a folder above may hold other results by now
                path.rmdir()
        return True

    def _give(self, path: Path) -> None:
        if self.owner is not None:
            with suppress(FileNotFoundError):
                os.chown(path, self.owner.uid, self.owner.gid, follow_symlinks=False)


def _make_parents(base: Path) -> tuple[Path, ...]:
    """Make ``base`` and what is missing above it; what was made, outermost first."""
    missing = [path for path in (base, *base.parents) if not path.exists()]
    base.mkdir(parents=True, exist_ok=True)
    return tuple(reversed(missing))


def _make_new(base: Path, stem: str) -> Path:
    """A folder that nobody else has: two runs may start in the same second."""
    number = 1
    while True:
        path = base / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        else:
            return path
