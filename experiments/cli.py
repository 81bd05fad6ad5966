"""The command ``treecast``: a module of ``experiments/commands`` for each of its commands, found by walking them.

A module has ``command``, a function that typer turns into options. Its docstring is the help, or ``HELP`` where it has
an example; ``SHORT_HELP`` is the line in the list, where the docstring's first is too long. Heavy imports wait until a
command needs them, so that ``--help`` is quick.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

import typer
from typer.exceptions import TyperException

from experiments import commands
from experiments.errors import UserError, exit_code_of

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Treecast emulates multicast collectives on fat trees of Open vSwitch, with faults, on one machine.",
)

FIRST = ("run", "doctor", "clean")
"""The commands that the list begins with; the others follow by name."""


def _register() -> None:
    names = [info.name for info in iter_modules(commands.__path__)]
    for name in sorted(names, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name)):
        module = import_module(f"{commands.__name__}.{name}")
        decorate = app.command(name, help=getattr(module, "HELP", None), short_help=getattr(module, "SHORT_HELP", None))
        decorate(module.command)


_register()


def main() -> None:
    """The console command: every error is one line and an exit code."""

    def action() -> int:
        try:
            return app(sys.argv[1:] or ["--help"], prog_name="treecast", standalone_mode=False) or 0
        except TyperException as problem:
            raise UserError(f"{problem.format_message()} (see treecast --help)") from None

    sys.exit(exit_code_of(action))


if __name__ == "__main__":
    main()
