"""A user's program as the application of every host: it computes, and its NIC carries out the collectives."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from endpoints.io.commands import Call
from experiments.errors import UserError

if TYPE_CHECKING:
    from endpoints.nic.verbs import Nic
    from experiments.runner import Conduct, Stage

Main = Callable[["Nic"], object]

MODULE = "treecast_application"
"""What the program is called among modules, so that processes forked from here find its functions by name."""


def load(path: Path) -> Main:
    """The function ``main`` of a Python file; :class:`UserError` where there is none. The file is executed here."""
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise UserError(f"{str(path)!r}: no such Python file")
    module = sys.modules[MODULE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main: Main | None = getattr(module, "main", None)
    if not callable(main):
        raise UserError(f"{str(path)!r}: there is no function main(nic)")
    return main


def everywhere(main: Main, say: Callable[[str], None]) -> Conduct:
    """Call it in the application of every host, and tell what each returned."""

    def conduct(stage: Stage) -> tuple[()]:
        calls = {host: Call(main) for host in stage.ranks.names}
        for host, value in stage.ranks.call(calls, stage.check).items():
            say(f"{host}: {value}")
        return ()

    return conduct
