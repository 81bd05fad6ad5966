"""What a second terminal may ask of a running experiment, and the answers: one line of JSON each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from experiments.errors import TreecastError
from experiments.faults.director import Director
from experiments.faults.fault import parse_fault
from experiments.results import FaultRow
from topo.fabric import Fabric
from topo.ovs import OvsError
from topo.tc import BatchError

LONGEST_LINE = 1 << 16


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Add(_Line):
    """Put a fault in force, said in its words."""

    do: Literal["add"] = "add"
    words: Annotated[str, Field(max_length=1000)]


class Clear(_Line):
    """Put an end to a fault."""

    do: Literal["clear"] = "clear"
    number: Annotated[int, Field(ge=1)]


class List(_Line):
    """All faults of the run."""

    do: Literal["list"] = "list"


Request = Add | Clear | List
_REQUEST: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="do")])


class Reply(_Line):
    """The faults that were asked for, or ``error``, a line that says why not."""

    error: str | None = None
    faults: list[FaultRow] = []


def answer(line: bytes, director: Director, fabric: Fabric) -> Reply:
    """Do what a line asks for."""
    try:
        request = _REQUEST.validate_json(line)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        return Reply(error=f"not a request: {where} {first['msg']}".replace("  ", " "))
    try:
        return Reply(faults=_done(request, director, fabric))
    except (TreecastError, BatchError, OvsError, OSError) as problem:
        return Reply(error=str(problem))


def _done(request: Request, director: Director, fabric: Fabric) -> list[FaultRow]:
    match request:
        case Add(words=words):
            number = director.add(parse_fault(words, fabric)).number
        case Clear(number=number):
            director.clear(number)
        case List():
            return director.rows()
    return [row for row in director.rows() if row.number == number]
