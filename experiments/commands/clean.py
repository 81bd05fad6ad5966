"""``treecast clean``: what killed runs left behind is undone."""

from __future__ import annotations

import sys

from experiments.errors import UserError

SHORT_HELP = "Undo what killed runs left behind."


def command() -> None:
    """Undo what killed runs left behind: sysctls, control groups, folders. Live runs and foreign things stay."""
    from experiments.ledger import Ledger

    ledger = Ledger()
    try:
        done, live = ledger.clean()
    except PermissionError:
        raise UserError(f"clean: {ledger.root} belongs to root; run it as root or with sudo") from None
    for line in done or ["nothing to clean"]:
        sys.stdout.write(f"{line}\n")
    if live:
        sys.stdout.write(f"{live} live runs left alone\n")
