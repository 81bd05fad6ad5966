"""How a scenario's fields are told to people, in lines, labels and axes: ``loss 1%``, ``size 64 KiB``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from experiments import units

if TYPE_CHECKING:
    from experiments.results import FaultRow

LABELS = {
    "algorithms": "",
    "topology": "",
    "rate_bps": "links",
    "size_bytes": "size",
    "link_delay_ns": "link delay",
    "queue_packets": "queue",
    "delay_ns": "delay time",
}
"""Fields that are not called by their own name; an empty label is for values that speak for themselves."""

_SHARES = frozenset({"loss", "reorder", "duplicate", "corrupt", "delay"})


def tell_value(field: str, value: Any) -> str:
    """A field's value as people write it."""
    if value is None:
        return "none"
    if field.endswith("_bps"):
        return units.format_rate(value)
    if field.endswith("_bytes"):
        return units.format_size(value)
    if field.endswith("_ns"):
        return units.format_time(value)
    if field in _SHARES:
        return units.format_probability(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return ",".join(_tell_part(part) for part in value) or "none"
    return str(value)


def _tell_part(part: Any) -> str:
    """An entry of a list; an impairment by what it sets."""
    if isinstance(part, BaseModel):
        part = part.model_dump()
    if not isinstance(part, dict):
        return str(part)
    told = (",".join(map(str, value)) if isinstance(value, (list, tuple)) else value for value in part.values())
    return ":".join(str(value) for value in told if value not in (None, ""))


def tell_field(field: str, value: Any) -> str:
    """A field and its value."""
    label = LABELS.get(field, field.removesuffix("_ns").replace("_", " "))
    return f"{label} {tell_value(field, value)}".lstrip()


def tell_duration(seconds: float) -> str:
    """A duration as one says it: ``8 s``, ``3 min``, ``1 h 20 min``."""
    if seconds < 99.5:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def tell_fault(row: FaultRow) -> str:
    """A fault: what was declared, applied and observed."""
    told = [row.outcome]
    if row.applied_seconds is not None:
        end = "" if row.ended_seconds is None else f" to {row.ended_seconds:.3f} s"
        told.append(f"in force {row.applied_seconds:.3f} s{end}")
    told += [f"{count} {name}" for name, count in row.observed.items()]
    if row.agrees is not None:
        told.append("as declared" if row.agrees else "NOT as declared")
    if row.remark:
        told.append(row.remark)
    return f"fault {row.number}, {row.declared}: {row.fault}: {', '.join(told)}"
