"""Local misuse of the protocol. What comes from the network never raises: it is counted under a named reason."""

from __future__ import annotations


class ProtocolError(Exception):
    """The caller asked for something that cannot be: the message names the value and what would have been right."""
