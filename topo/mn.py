"""Treecast's topologies for plain Mininet: ``mn --custom topo/mn.py --topo fattree,k=4 --controller none``.

``mn`` executes this file without ``__file__`` and copies each of its global names over its own, so that a class named
Host would replace Mininet's. Everything is therefore local to one function, and ``topos`` is the only name left. ``mn``
also runs under the system's python3, which knows nothing of the checkout; the code's own file name tells where that is.
"""


def _topologies() -> dict[str, object]:
    import importlib
    import sys
    from pathlib import Path

    here = Path(sys._getframe().f_code.co_filename).resolve()  # noqa: SLF001  # ``mn`` offers no other way
    sys.path.insert(0, str(here.parents[1]))
    try:
        registry = importlib.import_module("topo.registry")
        error = importlib.import_module("topo.fabric").FabricError
    finally:
        sys.path.remove(str(here.parents[1]))
    from mininet.topo import Topo

    def constructor(name: str) -> object:
        def make(*args: object, **params: object) -> object:
            text = ",".join([name, *map(str, args), *(f"{key}={value}" for key, value in params.items())])
            try:
                fabric = registry.parse_topology(text)
            except error as problem:
                # Any other exception makes ``mn`` remove every bridge and kill every ping of the machine.
                raise SystemExit(f"mn: {problem}") from None
            topo = Topo()
            for host in fabric.hosts:
                topo.addHost(host.name, ip=f"{host.ip}/8", mac=host.mac)
            for switch in fabric.switches:
                topo.addSwitch(switch.name, dpid=f"{switch.dpid:x}")
            for link in fabric.links:
                topo.addLink(link.a, link.b, port1=link.a_port, port2=link.b_port)
            return topo

        make.__name__ = name
        return make

    return {name: constructor(name) for name in registry.topologies()}


topos = _topologies()
del _topologies
