"""The Ryu application: events of switches into the planner, its commands out, and a line of JSON for whoever watches.

Handlers decide nothing. Planning is put off to one green thread, so that a thousand reports are planned for together.
Whoever watches asks by lines of JSON over the same socket: ``{"request": "port_stats", "number": n}``.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from eventlet.hubs import trampoline
from ryu import cfg
from ryu.base.app_manager import RyuApp
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as of13
from ryu.ofproto import ofproto_v1_3_parser as parser13

from controller import openflow13
from controller.inventory import Inventory, questions
from controller.planner import Planner
from topo.fabric import Fabric

SETTLE_S = 0.02
"""Time that events have to come together before they are planned for."""
GRACE_S = 10.0
"""How long after a switch has come or gone those that are missing are waited for. Bridges try every second."""
REMEMBERED = 100_000
"""Messages whose subject is remembered, in case a switch refuses them."""
HANDSHAKE = [CONFIG_DISPATCHER, MAIN_DISPATCHER]
"""States in which a switch may answer what it was asked when it connected."""

cfg.CONF.register_cli_opts(
    [
        cfg.StrOpt("treecast-fabric", default=""),
        cfg.IntOpt("treecast-status-fd", default=1),
        cfg.IntOpt("treecast-drain-ms", default=0),
    ]
)


def loud(handler: Callable[..., None]) -> Callable[..., None]:
    """An exception ends the process with its traceback, where eventlet would only print and go on."""

    @wraps(handler)
    def guarded(*arguments: Any) -> None:
        try:
            handler(*arguments)
        except Exception:  # noqa: BLE001 - whatever it is
            traceback.print_exc()
            os._exit(1)

    return guarded


class TreecastController(RyuApp):
    """See the module."""

    OFP_VERSIONS = [of13.OFP_VERSION]  # noqa: RUF012 - Ryu's way

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fabric = Fabric.from_json(Path(cfg.CONF.treecast_fabric).read_text(encoding="utf-8"))
        self._planner = Planner(self._fabric)
        self._datapaths: dict[str, Any] = {}
        self._barriers: dict[tuple[str, int], int] = {}
        self._sent: dict[tuple[str, int], str] = {}
        self._asked: dict[tuple[str, int], int] = {}
        self._inventories: dict[Any, Inventory] = {}
        self._patience: Any = None
        self._drain_s = cfg.CONF.treecast_drain_ms / 1e3
        self._wake = hub.Event()
        hub.spawn(loud(self._plan_for_ever))
        hub.spawn(loud(self._answer_for_ever))

    def _tell(self, event: str, **values: Any) -> None:
        os.write(cfg.CONF.treecast_status_fd, json.dumps({"event": event, **values}).encode() + b"\n")

    def _answer_for_ever(self) -> None:
        descriptor, text = cfg.CONF.treecast_status_fd, b""
        while True:
            trampoline(descriptor, read=True)
            data = os.read(descriptor, 4096)
            if not data:
                return  # whoever watched is gone; the end of standard input is the sign to end
            *lines, text = (text + data).split(b"\n")
            for line in lines:
                self._answer(**json.loads(line))

    def _answer(self, request: str, number: int) -> None:
        if request != "port_stats":
            raise ValueError(f"request {request!r}: port_stats is the only one")
        self._tell("port_stats_asked", number=number, switches=list(self._datapaths))
        for switch, datapath in list(self._datapaths.items()):  # sending lets others run, and switches come and go
            message = openflow13.port_stats_request(datapath)
            datapath.set_xid(message)
            self._asked[switch, message.xid] = number
            datapath.send_msg(message)

    def _plan_for_ever(self) -> None:
        while True:
            self._wake.wait()
            hub.sleep(self._drain_s if self._planner.draining else SETTLE_S)
            self._wake.clear()
            for switch, commands in self._planner.replan().items():
                for command in commands:
                    self._send(switch, command)
            done = self._planner.announce()
            if done is not None:
                groups = {group: sorted(members) for group, members in done.groups.items()}
                down = sorted(map(list, done.down))
                self._tell(
                    "programmed",
                    generation=done.generation,
                    groups=groups,
                    slots=done.slots,
                    down=down,
                    absent=list(done.absent),
                )

    def _be_patient(self) -> None:
        """Wait for switches that are missing; give them up when none has come or gone for a while."""
        if self._patience is not None:
            self._patience.cancel()
        self._patience = hub.spawn_after(GRACE_S, loud(self._give_up))

    def _give_up(self) -> None:
        self._patience = None
        if self._planner.missing:
            self._tell("switches_given_up", names=list(self._planner.missing))
            self._planner.give_up()
            self._wake.set()

    def _send(self, switch: str, command: Any) -> None:
        datapath = self._datapaths.get(switch)
        if datapath is None:
            return
        for message in openflow13.encode(datapath, command):
            datapath.set_xid(message)
            if len(self._sent) > REMEMBERED:
                self._sent.clear()
            self._sent[switch, message.xid] = str(command)
            if isinstance(message, parser13.OFPBarrierRequest):
                self._barriers[switch, message.xid] = command.generation
            datapath.send_msg(message)

    def _switch(self, event: Any) -> str | None:
        switch = self._fabric.by_dpid.get(event.msg.datapath.id)
        return None if switch is None else switch.name

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    @loud
    def _features(self, event: Any) -> None:
        datapath = event.msg.datapath
        self._inventories[datapath] = Inventory()
        for question in questions(datapath):
            datapath.send_msg(question)

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, HANDSHAKE)
    @loud
    def _ports(self, event: Any) -> None:
        switch = self._switch(event)
        if switch is not None:
            self._planner.ports_seen(switch, openflow13.port_states(event.msg.body))
            self._wake.set()

    @set_ev_cls([ofp_event.EventOFPFlowStatsReply, ofp_event.EventOFPGroupDescStatsReply], HANDSHAKE)
    @loud
    def _holds(self, event: Any) -> None:
        switch, datapath = self._switch(event), event.msg.datapath
        inventory = self._inventories.get(datapath)
        if switch is None or inventory is None or not inventory.add(event.msg):
            return
        del self._inventories[datapath]
        self._datapaths[switch] = datapath
        self._planner.switch_up(switch, inventory.rules)
        total = len(self._fabric.switches)
        self._tell("switch", name=switch, connected=self._planner.connected, total=total)
        self._be_patient()
        self._wake.set()

    @set_ev_cls(ofp_event.EventOFPStateChange, DEAD_DISPATCHER)
    @loud
    def _gone(self, event: Any) -> None:
        switch = self._fabric.by_dpid.get(event.datapath.id)
        self._inventories.pop(event.datapath, None)
        if switch is not None and self._datapaths.get(switch.name) is event.datapath:
            del self._datapaths[switch.name]
            self._planner.switch_down(switch.name)
            self._tell("switch_gone", name=switch.name)
            self._be_patient()
            for key in [key for key in self._asked if key[0] == switch.name]:
                self._tell("port_stats", number=self._asked.pop(key), switch=switch.name, ports={}, more=False)
            self._wake.set()

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    @loud
    def _port_status(self, event: Any) -> None:
        switch = self._switch(event)
        if switch is not None:
            port, up = openflow13.changed_port(event.msg)
            self._planner.port_changed(switch, port, up=up)
            self._wake.set()

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    @loud
    def _packet_in(self, event: Any) -> None:
        switch = self._switch(event)
        if switch is not None:
            self._planner.frame_seen(switch, *openflow13.handed_up(event.msg))
            self._wake.set()

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    @loud
    def _barrier(self, event: Any) -> None:
        switch = self._switch(event)
        if switch is not None:
            self._planner.acknowledged(switch, self._barriers.pop((switch, event.msg.xid), 0))
            self._wake.set()

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    @loud
    def _port_stats(self, event: Any) -> None:
        switch, message = self._switch(event), event.msg
        if switch is None or (switch, message.xid) not in self._asked:
            return
        more = openflow13.more_follows(message)
        number = self._asked[switch, message.xid] if more else self._asked.pop((switch, message.xid))
        ports = openflow13.port_counters(message)
        self._tell("port_stats", number=number, switch=switch, ports=ports, more=more)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, HANDSHAKE)
    @loud
    def _error(self, event: Any) -> None:
        switch = self._switch(event) or f"dpid {event.msg.datapath.id}"
        refusal = openflow13.refusal(event.msg)
        about = self._sent.get((switch, refusal.xid), "an unknown message")
        self._planner.refused(switch)
        self._tell("openflow_error", switch=switch, type=refusal.type, code=refusal.code, about=about)
