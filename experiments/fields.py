"""The kinds of field that a scenario has: what each reads, and what pydantic's complaints look like in one line.

Text goes through :mod:`experiments.units`, so that a YAML file, the command line and a ``summary.json`` mean the same.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo

from endpoints.core.communicator import ROCE_MTUS
from endpoints.impairments.spec import parse_psns
from experiments import units
from experiments.errors import UserError
from topo.cgroups.forms import parse_cpus


def _rate(value: Any, info: ValidationInfo) -> Any:
    return units.parse_rate(value, str(info.field_name)) if isinstance(value, str) else value


def _size(value: Any, info: ValidationInfo) -> Any:
    return units.parse_size(value, str(info.field_name)) if isinstance(value, str) else value


def _time(value: Any, info: ValidationInfo) -> Any:
    return units.parse_time(value, str(info.field_name)) if isinstance(value, str) else value


def _share(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        return units.parse_probability(value, str(info.field_name))
    if isinstance(value, int) and value != 0:
        raise UserError(f"{info.field_name} {value}: write a percentage like {value}%, or a fraction like 0.01")
    return value


def _words(value: Any) -> Any:
    if _is_number(value):
        return (str(value),)
    if isinstance(value, list):
        return tuple(str(part) if _is_number(part) else part for part in value)
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _is_number(value: Any) -> bool:
    """YAML makes a number of a rank."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_mtu(value: int | str | None) -> int:
    """The path MTU in bytes; UserError for one that RoCE does not know."""
    known = {str(mtu): mtu for mtu in ROCE_MTUS}
    if str(value) not in known:
        raise UserError(f"mtu {value}: not a RoCE path MTU, which are {', '.join(known)} bytes")
    return known[str(value)]


def _cpus(value: Any, info: ValidationInfo) -> Any:
    """YAML makes a number of a single one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    try:
        return tuple(sorted(parse_cpus(value))) if isinstance(value, str) else value
    except ValueError as problem:
        raise UserError(f"{info.field_name}: {problem}") from None


def _psns(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_psns(value)
    except ValueError as problem:
        raise UserError(f"impairments: {problem}") from None


Rate = Annotated[int, BeforeValidator(_rate), Field(gt=0)]
"""bit/s; text is read by :func:`units.parse_rate`."""
Size = Annotated[int, BeforeValidator(_size), Field(ge=0)]
"""Bytes; text is read by :func:`units.parse_size`."""
Nanoseconds = Annotated[int, BeforeValidator(_time), Field(ge=0)]
"""Text is read by :func:`units.parse_time`."""
Probability = Annotated[float, BeforeValidator(_share), Field(ge=0, le=1)]
"""0 to 1; text is read by :func:`units.parse_probability`."""
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
"""A list, or text with commas."""
Psns = Annotated[tuple[int | tuple[int, int], ...], BeforeValidator(_psns)]
"""PSNs, and first and last of ranges; text is read by :func:`endpoints.impairments.spec.parse_psns`."""
Cpus = Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(_cpus)]
"""Numbers of CPUs; text is read by :func:`topo.cgroups.forms.parse_cpus`."""
Count = Annotated[int, Field(ge=1)]


_PLAIN_WORDS = {
    "Input should": "must",
    "valid integer": "whole number",
    "valid tuple": "list",
    "a valid string": "text",
    "valid dictionary": "set of keys and values",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}
"""Pydantic's words, and how they are said here."""


def first_complaint(problem: ValidationError, known: dict[str, list[str]]) -> str:
    """The first complaint of pydantic in one line: field, value, what would have been right.

    ``known`` has the fields of each list of nested values, by the list's name, and those of the model itself under "".
    """
    first = problem.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"] if not str(part).startswith("function-"))
    if first["type"] == "extra_forbidden":
        fields = known[where.partition(".")[0] if "." in where else ""]
        return f"scenario has no {where!r}: known are {', '.join(fields)}"
    words = first["msg"].partition(", unable")[0].partition(" or instance of")[0]
    for pydantics, plain in _PLAIN_WORDS.items():
        words = words.replace(pydantics, plain)
    return f"{where} {first['input']!r}: {words[0].lower()}{words[1:]}"
