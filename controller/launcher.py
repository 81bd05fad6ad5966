"""Starts the Ryu application in a process of its own, without ryu-manager, listening on the loopback interface only.

``python -m controller.launcher --fabric FILE --listen 127.0.0.1:PORT --status-fd N --drain-ms MS``. It ends when its
standard input does, so that it never outlives whoever started it. Exit code 4: the port is in use.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading

PORT_TAKEN = 4
ECHO_S, UNREPLIED = 5.0, 12
"""A switch that leaves this many echo requests, ``ECHO_S`` apart, unanswered has lost its connection. That is long on
purpose: one busy ovs-vswitchd answers for all switches of a fabric, and late, while it goes on forwarding; what is
really down is told by the state of ports."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fabric", required=True)
    parser.add_argument("--listen", required=True)
    parser.add_argument("--status-fd", type=int, required=True)
    parser.add_argument("--drain-ms", type=int, default=0)
    return parser.parse_args()


def _end_with_stdin() -> None:
    """A thread of the operating system, since it must wait outside of eventlet's hub."""
    descriptor = sys.stdin.fileno()

    def watch() -> None:
        while os.read(descriptor, 4096):
            pass
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Run until the standard input ends."""
    arguments = _arguments()
    host, _, port = arguments.listen.rpartition(":")
    if host != "127.0.0.1":
        sys.exit(f"controller: --listen {arguments.listen}: only 127.0.0.1 is listened on")
    _end_with_stdin()
    import eventlet.wsgi

    if not hasattr(eventlet.wsgi, "ALREADY_HANDLED"):
        eventlet.wsgi.ALREADY_HANDLED = object()
    from ryu import cfg
    from ryu.base.app_manager import AppManager
    from ryu.controller import controller as ryu_controller  # noqa: F401
    from ryu.lib import hub

    import controller.ryu_app  # noqa: F401 - registers its options

    options = ["--ofp-listen-host", host, "--ofp-tcp-listen-port", port]
    options += ["--treecast-fabric", arguments.fabric, "--treecast-status-fd", str(arguments.status_fd)]
    options += ["--treecast-drain-ms", str(arguments.drain_ms)]
    cfg.CONF(options, project="treecast", default_config_files=[])
    cfg.CONF.set_override("echo_request_interval", ECHO_S)
    cfg.CONF.set_override("maximum_unreplied_echo_requests", UNREPLIED)
    try:
        with eventlet.listen((host, int(port))):
            pass
    except OSError as problem:
        sys.stderr.write(f"controller: 127.0.0.1:{port}: {problem.strerror}\n")
        sys.exit(PORT_TAKEN)
    manager = AppManager.get_instance()
    manager.load_apps(["controller.ryu_app", "ryu.controller.ofp_handler"])
    services = manager.instantiate_apps(**manager.create_contexts())
    os.write(arguments.status_fd, json.dumps({"event": "listening", "port": int(port)}).encode() + b"\n")
    hub.joinall(services)


if __name__ == "__main__":
    main()
