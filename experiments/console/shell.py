"""The console: Mininet's own command line on the running fabric, with collectives, faults and captures added.

A command is a line; what is wrong with it is told in a line, and the console goes on. At a terminal Ctrl-C ends what it
waits for, or gives a new prompt; Ctrl-D or ``exit`` leaves. Fed by a script (``--script``, or standard input that is no
terminal) it does the same but for Ctrl-C, which ends it, and its end says whether anything was wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import yaml
from mininet.cli import CLI

from controller.plan import Plan
from experiments import signals
from experiments.capture_process import Captures
from experiments.console import views
from experiments.console.history import scenario_of
from experiments.console.jobs import Jobs, told
from experiments.errors import Interrupted, TreecastError, UserError
from experiments.faults.fault import continuations, parse_fault
from experiments.runner import Stage
from experiments.units import parse_size
from experiments.wording import tell_fault
from topo.ovs import OvsError
from topo.tc import BatchError

ALLGATHER, BROADCAST, REDUCE_SCATTER = "mcast_allgather", "mcast_broadcast", "ring_reduce_scatter"


class Shell(CLI):
    """See the module. ``lines`` are the script's, None at a terminal; ``wrong`` counts lines that failed."""

    prompt = "treecast> "

    def __init__(self, stage: Stage, jobs: Jobs, captures: Captures, lines: Iterable[str] | None) -> None:
        self.wrong = 0
        self._stage = stage
        self._jobs = jobs
        self._captures = captures
        self._lines = lines
        quiet, self._silence = os.pipe()
        """What Mininet listens to for keys while a host's command runs: a script's lines are not meant for that."""
        stdin: TextIO = sys.stdin if lines is None else os.fdopen(quiet)
        super().__init__(stage.net.net, stdin=stdin, stdout=sys.stdout)

    def run(self) -> None:
        """Nothing: Mininet's constructor calls it, before anybody has the console in hand."""

    def run_to_end(self) -> None:
        """Read commands until there are no more."""
        if self._lines is None:
            _complete_whole_words()
            with signals.every_interrupt():
                while not self._read_until_left():
                    continue
            return
        for line in self._lines:
            text = line.split("#", 1)[0].strip()
            if text:
                self.tell(f"{self.prompt}{text}")
                if self.onecmd(text):
                    return

    def _read_until_left(self) -> bool:
        """Read commands; false where Ctrl-C has come between."""
        try:
            self.cmdloop()
        except Interrupted:  # somebody wants the whole run to end
            raise
        except KeyboardInterrupt:
            self._say([""])
            for node in self.mn.values():  # what runs there was in the foreground
                while node.waiting:
                    node.sendInt()
                    node.waitOutput()
            return False
        return True

    def isatty(self) -> bool:
        """Whether a person types."""
        return self._lines is None

    def onecmd(self, line: str) -> bool:
        """One command; an error of ours is one line and no end."""
        try:
            return bool(super().onecmd(line))
        except (TreecastError, BatchError, OvsError, OSError) as problem:
            self._complain(str(problem))
            return False

    def default(self, line: str) -> None:
        """A host's name and a command for it, as in Mininet."""
        if line == "EOF":
            self.do_EOF(line)
        elif line.split(maxsplit=1)[0] in self.mn:
            super().default(line)
        else:
            self._complain(f"unknown command {line.split(maxsplit=1)[0]!r}; `help` lists them")

    def tell(self, text: str) -> None:
        """A line for people, also from another thread: the prompt and what was typed behind it come again below."""
        typed = f"{self.prompt}{_typed()}" if self.isatty() else ""
        sys.stdout.write(f"\r\x1b[K{text}\n{typed}" if typed else f"{text}\n")
        sys.stdout.flush()

    # -- collectives ------------------------------------------------------------------------------------------------

    def do_allgather(self, line: str) -> None:
        """Allgather SIZE [repeat]: every host gets every host's block of SIZE; in the background, again and again."""
        self._begin(ALLGATHER, line)

    def do_broadcast(self, line: str) -> None:
        """Broadcast SIZE [repeat]: all hosts get SIZE bytes from the first."""
        self._begin(BROADCAST, line)

    def do_reduce_scatter(self, line: str) -> None:
        """reduce_scatter SIZE [repeat]: every host gets the sum of what all have for it, a block of SIZE."""
        self._begin(REDUCE_SCATTER, line)

    def do_stop(self, _line: str) -> None:
        """stop: end the operation in the background, and what repeats it."""
        self._jobs.stop()
        self._jobs.wait()

    def do_wait(self, _line: str) -> None:
        """wait: until the operation in the background has ended, and what repeats it; Ctrl-C ends the waiting alone."""
        self._jobs.wait()

    def do_status(self, _line: str) -> None:
        """status: what the operation in the background is at."""
        self._say([self._jobs.status])

    def do_stats(self, _line: str) -> None:
        """stats: all operations so far, with their time, recoveries and verdict."""
        self._say(map(told, self._jobs.runs), "no operation has ended yet")

    # -- faults -----------------------------------------------------------------------------------------------------

    def do_fault(self, line: str) -> None:
        """Fault add FAULT | list | clear NUMBER; `sh treecast faults` lists the words, TAB completes them."""
        action, _, rest = line.strip().partition(" ")
        if action == "add" and rest:
            entry = self._stage.director.add(parse_fault(rest, self._stage.scenario.fabric))
            self._say([f"fault {entry.number}: {entry.fault}: {entry.state.value}"])
        elif action == "list" and not rest:
            self._say(map(tell_fault, self._stage.director.rows()), "no faults")
        elif action == "clear" and rest.strip().isdecimal():
            number = self._stage.director.clear(int(rest)).number
            self._say(tell_fault(row) for row in self._stage.director.rows() if row.number == number)
        else:
            raise UserError(f"fault {line!r}: write add and a fault, list, or clear and a number")

    def complete_fault(self, text: str, line: str, begin: int, _end: int) -> list[str]:
        """The words that may follow."""
        words = line[:begin].split()[1:]
        if not words:
            found = ["add", "list", "clear"]
        elif words[0] == "add":
            found = continuations(words[1:], self._stage.scenario.fabric)
        elif words == ["clear"]:
            found = [str(row.number) for row in self._stage.director.rows()]
        else:
            found = []
        return [word for word in found if word.startswith(text)]

    def do_timeline(self, _line: str) -> None:
        """timeline: the faults so far as steps of a scenario's timeline."""
        entries = self._stage.director.entries()
        self._say((f"{entry.when}: {entry.fault} ({entry.state.value})" for entry in entries), "no faults")

    def do_history(self, line: str) -> None:
        """History save FILE: what was done as a scenario that repeats it."""
        match line.split():
            case ["save", name]:
                fields = scenario_of(self._stage.scenario, self._jobs.runs, self._stage.director.entries())
                path = Path(name)
                path.write_text(yaml.safe_dump(fields, sort_keys=False), encoding="utf-8")
                self._say([f"saved; treecast run {path} repeats it"])
            case _:
                raise UserError(f"history {line!r}: write save and a file")

    # -- looking ----------------------------------------------------------------------------------------------------

    def do_capture(self, line: str) -> None:
        """Capture start TARGETS | stop: hosts and links like h1 e00-a00, into the result folder."""
        match line.split():
            case ["start", *targets] if targets:
                self._say(f"capturing {target}" for target in self._captures.start(targets))
            case ["stop"]:
                self._say((str(path) for path in self._captures.stop()), "no capture was on")
            case _:
                raise UserError(f"capture {line!r}: write start and hosts or links, or stop")

    def complete_capture(self, text: str, line: str, begin: int, _end: int) -> list[str]:
        """Hosts and links."""
        fabric = self._stage.scenario.fabric
        links = (f"{link.a}-{link.b}" for link in fabric.links)
        found = [*fabric.host, *links] if len(line[:begin].split()) > 1 else ["start", "stop"]
        return [word for word in found if word.startswith(text)]

    def do_groups(self, _line: str) -> None:
        """groups: the multicast groups, their members and the size of their trees."""
        self._say(views.groups(self._plan(), self._stage.scenario.fabric))

    def do_trees(self, _line: str) -> None:
        """trees: the tree of every group, as it is in force at the switches."""
        self._say(views.trees(self._plan()))

    def do_ports(self, _line: str) -> None:
        """ports: the kernel's counters of every port."""
        self._say(views.ports(self._stage.scenario.fabric, self._stage.net.interface_counters()))

    def _plan(self) -> Plan:
        """What is in force at the switches; an operation under way reads the controller's reports itself."""
        if not self._jobs.busy:
            self._stage.controller.check()
        return self._stage.plan

    # -- inside -----------------------------------------------------------------------------------------------------

    def _begin(self, algorithm: str, line: str) -> None:
        match line.split():
            case [size]:
                self._jobs.start(algorithm, parse_size(size), repeat=False)
            case [size, "repeat"]:
                self._jobs.start(algorithm, parse_size(size), repeat=True)
            case _:
                raise UserError(f"{line!r}: write a size, like 1MiB, and perhaps repeat")

    def _say(self, lines: Iterable[str], nothing: str = "") -> None:
        for text in list(lines) or ([nothing] if nothing else []):
            sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def _complain(self, text: str) -> None:
        self.wrong += 1
        self._say([f"error: {text}"])


def _complete_whole_words() -> None:
    """A dash or an arrow is part of a link's name."""
    import readline

    readline.set_completer_delims(" \t\n")


def _typed() -> str:
    import readline

    return readline.get_line_buffer()
