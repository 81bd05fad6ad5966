"""What can go wrong, by who can cure it: each error is one line for the user and carries the program's exit code.

A message names the thing, its value and what would have been right. Exit codes: 0 all verified, 1 the experiment failed
its checks, 2 bad usage or input, 3 the environment lacks something, 130 interrupted.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

EXIT_OK = 0
EXIT_INTERRUPTED = 130


class TreecastError(Exception):
    """Base of all errors that are told in one line; never raised itself."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        if type(self) is TreecastError:
            raise TypeError("raise one of the kinds of TreecastError, so that the exit code says who can cure it")
        super().__init__(" ".join(message.split()))


class ExperimentFailed(TreecastError):
    """The experiment ran, or tried to, and did not pass: a wrong byte, a dead host, a rule that is not in."""

    exit_code = 1


class Refused(ExperimentFailed):
    """An operation is not begun, since those who are left of its hosts cannot do what it asks for."""


class UserError(TreecastError):
    """What the user asked for cannot be done as asked; nothing has been started."""

    exit_code = 2


class EnvironmentMissing(TreecastError):
    """The machine lacks a program or a kernel feature; ``package`` is the Debian package that brings it, if any."""

    exit_code = 3

    def __init__(self, message: str, package: str | None = None) -> None:
        self.package = package
        super().__init__(f"{message} (apt-get install {package})" if package else message)


class Cancelled(Exception):
    """The operation under way is no longer wanted; the message says by whom, and becomes the operation's error."""


class Interrupted(KeyboardInterrupt):
    """SIGINT, SIGTERM or SIGHUP asked for an orderly stop.

    No ``except Exception`` catches it, so that it reaches every ``finally`` on its way out.
    """

    exit_code = EXIT_INTERRUPTED

    def __init__(self, signal_name: str) -> None:
        self.signal_name = signal_name
        super().__init__(f"interrupted by {signal_name}")


def complain(line: str) -> None:
    """One line on standard error, under the program's name."""
    sys.stderr.write(f"treecast: {line}\n")
    sys.stderr.flush()


def exit_code_of(action: Callable[[], int]) -> int:
    """Do ``action`` and return its exit code, or that of the error which ended it, told in one line.

    An error that is none of ours is a defect of the program and keeps its traceback.
    """
    try:
        return action()
    except TreecastError as problem:
        complain(str(problem))
        return problem.exit_code
    except KeyboardInterrupt as stop:
        complain(str(stop) or "interrupted")
        return EXIT_INTERRUPTED
    except Exception:  # noqa: BLE001  # whatever it is, the exit code must say that it failed
        traceback.print_exc()
        return 1
