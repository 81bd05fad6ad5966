"""``treecast faults``: the words in which faults are said."""

from __future__ import annotations

import sys


def command() -> None:
    """List the words in which faults are said."""
    from experiments.faults.forms import forms

    for form in forms():
        sys.stdout.write(f"{form.words}\n    {form.summary}\n")
