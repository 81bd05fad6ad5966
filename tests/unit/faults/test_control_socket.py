"""A second terminal: the socket of a run, who may open it, what may be said over it."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from experiments import control_socket
from experiments.control_socket import NAME, Server, ask, listen
from experiments.errors import UserError
from experiments.faults.book import Book
from experiments.faults.director import Director
from experiments.faults.fault import Fault
from experiments.faults.service import Add, Clear, List, Reply, answer
from experiments.ledger import Ledger
from topo.registry import parse_topology

FABRIC = parse_topology("fattree,k=4")


class Anything:
    """A mechanism that takes everything and does nothing."""

    name = "fake"

    def takes(self, fault: Fault) -> bool:
        return fault.target != "vswitchd"

    def apply(self, number: int, fault: Fault) -> None:
        pass

    def observe(self, number: int) -> Mapping[str, int]:
        return {"packets": 100, "struck": 2}

    clear = observe


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def place(root: Path) -> Iterator[Path]:
    """The socket of a run that is on and answers."""
    with (
        Ledger(root).open_run() as live,
        listen(live.rundir) as listener,
        Director(Book(), [Anything()]) as director,
        Server(listener, lambda line: answer(line, director, FABRIC)),
    ):
        yield live.rundir / NAME


def test_faults_are_added_listed_and_cleared_from_outside(root: Path, place: Path) -> None:
    del place
    assert ask(List(), root=root) == Reply()
    [added] = ask(Add(words="link e00-a00 loss 2%"), root=root).faults
    assert (added.number, added.fault, added.declared) == (1, "link e00-a00 loss 2%", "by hand")
    ask(Add(words="host h7 kill"), root=root)
    assert [row.number for row in ask(List(), root=root).faults] == [1, 2]
    [cleared] = ask(Clear(number=1), root=root).faults
    assert (cleared.outcome, cleared.observed) == ("cleared", {"packets": 100, "struck": 2})


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"", "not a request: "),
        (b'{"do": "run", "words": "rm"}', "not a request: "),
        (b'{"do": "add", "words": "link", "more": 1}', "not a request: add.more Extra"),
        (b'{"do": "clear", "number": 0}', "not a request: clear.number"),
        (b'{"do": "clear", "number": 5}', "no fault 5: there are none"),
        (b'{"do": "add", "words": "link e00-a00 los 2%"}', "did you mean loss?"),
        (b'{"do": "add", "words": "vswitchd kill"}', "nothing on this machine"),
        (b"[" * 60_000, "not a request: "),
    ],
)
def test_what_is_wrong_is_answered_in_one_line(place: Path, line: bytes, complaint: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place))
        client.sendall(line + b"\n")
        said = b"".join(iter(lambda: client.recv(1 << 16), b""))
    reply = Reply.model_validate_json(said)
    assert reply.error is not None
    assert complaint in reply.error
    assert "\n" not in reply.error
    assert reply.faults == []


def test_only_the_owner_can_open_it(place: Path) -> None:
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_whoever_is_not_the_owner_is_refused_even_if_he_can_open_it(
    root: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del place
    monkeypatch.setattr(control_socket, "_peer", lambda _: os.geteuid() + 1)
    error = ask(List(), root=root).error
    assert error is not None
    assert "belongs to user" in error


def test_a_client_that_leaves_without_a_word_does_no_harm(root: Path, place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place))
    assert ask(List(), root=root) == Reply()


def test_where_no_run_is_on_that_is_told_in_one_line(root: Path) -> None:
    with pytest.raises(UserError, match="no run is on; start one with treecast run or treecast cli"):
        ask(List(), root=root)
    with Ledger(root).open_run():
        with pytest.raises(UserError, match="no run is on"):
            ask(List(), root=root)
        with pytest.raises(UserError, match="no run x is on; there are none"):
            ask(List(), "x", root)
