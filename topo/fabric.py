"""What a fabric looks like: hosts, switches and the links between them, as frozen values.

This module is the one thing that every other folder may know of ``topo``. It holds no process, no socket and no
clock: a :class:`Fabric` is built by a topology (``topo/fabrics/<name>.py``), travels as JSON to the controller's
process, and is executed as it stands by the virtual-time network.

Names and addresses are systematic: hosts are ``h1 .. hP`` in depth-first order of the
tree; a host has one port (0) and one uplink; switch ports count from 1. Which rank of a collective runs on which host
is no property of the fabric.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx


class FabricError(ValueError):
    """A fabric that contradicts itself, or a question about something that is not in it."""


@dataclass(frozen=True, slots=True)
class Host:
    """An end host. ``index`` counts from 0 in depth-first order; ``mac`` is ``02:..``, ``ip`` dotted IPv4."""

    name: str
    index: int
    mac: str
    ip: str


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch. ``tier`` 0 is the tier that hosts attach to (edge, leaf); greater is further up."""

    name: str
    dpid: int
    tier: int
    role: str
    pod: int | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A full-duplex link between port ``a_port`` of node ``a`` (the lower one) and ``b_port`` of node ``b``."""

    a: str
    a_port: int
    b: str
    b_port: int

    @property
    def ends(self) -> tuple[tuple[str, int, str], tuple[str, int, str]]:
        """Both directions as (node, its port, the other node)."""
        return (self.a, self.a_port, self.b), (self.b, self.b_port, self.a)


def interface(node: str, port: int) -> str:
    """Name of the network interface of ``port`` of ``node``, as Mininet names it: ``h1-eth0``, ``e00-eth3``."""
    return f"{node}-eth{port}"


def link_key(sender: str, receiver: str) -> str:
    """Key of a directed link in result files: ``"h1->e00"``."""
    return f"{sender}->{receiver}"


@dataclass(frozen=True)
class Fabric:
    """A whole fabric. ``params`` are the parameters that the topology was made from, defaults resolved."""

    topology: str
    params: dict[str, int]
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        names = [*(h.name for h in self.hosts), *(s.name for s in self.switches)]
        for what, values in (
            ("name", names),
            ("host index", [h.index for h in self.hosts]),
            ("MAC", [h.mac for h in self.hosts]),
            ("IP", [h.ip for h in self.hosts]),
            ("dpid", [s.dpid for s in self.switches]),
            ("port", [end[:2] for link in self.links for end in link.ends]),
        ):
            if len(set(values)) != len(values):
                raise FabricError(f"{self.topology}: a {what} is used twice")
        unknown = {n for link in self.links for n in (link.a, link.b)} - set(names)
        if unknown:
            raise FabricError(f"{self.topology}: links name unknown nodes {sorted(unknown)}")

    @cached_property
    def host(self) -> dict[str, Host]:
        """Host by name."""
        return {h.name: h for h in self.hosts}

    @cached_property
    def switch(self) -> dict[str, Switch]:
        """Switch by name."""
        return {s.name: s for s in self.switches}

    @cached_property
    def by_dpid(self) -> dict[int, Switch]:
        """Switch by datapath id."""
        return {s.dpid: s for s in self.switches}

    @cached_property
    def ports(self) -> dict[str, dict[int, str]]:
        """``ports[node][port]`` is the neighbour behind that port."""
        table: dict[str, dict[int, str]] = {n: {} for n in (*self.host, *self.switch)}
        for link in self.links:
            for node, port, peer in link.ends:
                table[node][port] = peer
        return table

    @cached_property
    def port_to(self) -> dict[str, dict[str, int]]:
        """``port_to[node][neighbour]`` is the port of ``node`` that leads there."""
        return {node: {peer: port for port, peer in ports.items()} for node, ports in self.ports.items()}

    @cached_property
    def edge_of(self) -> dict[str, str]:
        """The switch that each host attaches to."""
        return {h.name: self.ports[h.name][0] for h in self.hosts}

    @cached_property
    def graph(self) -> nx.Graph[str]:
        """The fabric as an undirected networkx graph (nodes by name; attribute ``tier``, -1 for hosts)."""
        import networkx as nx  # here, so that plain Mininet reads fabrics without networkx

        graph: nx.Graph[str] = nx.Graph()
        graph.add_nodes_from((h.name, {"tier": -1}) for h in self.hosts)
        graph.add_nodes_from((s.name, {"tier": s.tier}) for s in self.switches)
        graph.add_edges_from((link.a, link.b) for link in self.links)
        return graph

    @property
    def directed_links(self) -> tuple[tuple[str, int, str], ...]:
        """Every direction of every link as (sender, its port, receiver)."""
        return tuple(end for link in self.links for end in link.ends)

    def link_between(self, one: str, other: str) -> Link:
        """The link between two neighbours, in whatever order they are named; :class:`FabricError` if none."""
        for link in self.links:
            if {link.a, link.b} == {one, other}:
                return link
        raise FabricError(f"no link between {one} and {other} in {self.topology}")

    def to_json(self) -> str:
        """The fabric as one line of JSON; :meth:`from_json` reads it back."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Fabric:
        """The fabric that :meth:`to_json` wrote."""
        plain = json.loads(text)
        return cls(
            topology=plain["topology"],
            params=plain["params"],
            hosts=tuple(Host(**h) for h in plain["hosts"]),
            switches=tuple(Switch(**s) for s in plain["switches"]),
            links=tuple(Link(**link) for link in plain["links"]),
        )
