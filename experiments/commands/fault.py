"""``treecast fault``: faults in a run that is on, from another terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.errors import ExperimentFailed, UserError

if TYPE_CHECKING:
    from experiments.faults.service import Request

HELP = """Put a fault into a run that is on, list its faults, or clear one: add WORDS, list, clear NUMBER.

A fault is in force at once and has its own exact counters. `treecast faults` lists the words.

Example: treecast fault add link e00-a00 down for 3s
"""
SHORT_HELP = "Put faults into a run that is on, list and clear them."


def command(
    action: Annotated[str, typer.Argument(metavar="add|list|clear", help="What to do.")],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORDS]", help="The fault, or the number of the one to clear.")
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="NAME", help="Which run, where several are on.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Described by :data:`HELP`."""
    from experiments.control_socket import ask
    from experiments.wording import tell_fault

    reply = ask(_request(action, words or []), run)
    if reply.error is not None:
        raise ExperimentFailed(reply.error)
    if as_json:
        sys.stdout.write(reply.model_dump_json() + "\n")
    else:
        sys.stdout.write("".join(f"{tell_fault(row)}\n" for row in reply.faults) or "no faults\n")


def _request(action: str, words: list[str]) -> Request:
    from experiments.faults.service import Add, Clear, List

    if action == "add" and words:
        return Add(words=" ".join(words))
    if action == "clear" and len(words) == 1 and words[0].isdecimal() and int(words[0]) > 0:
        return Clear(number=int(words[0]))
    if action == "list" and not words:
        return List()
    raise UserError(f"fault {' '.join([action, *words])!r}: write add and a fault, list, or clear and a number")
