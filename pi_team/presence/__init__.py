"""Presence and liveness: who a process is, its heartbeats, and the judging of members."""

from pi_team.presence.heartbeat import Presence, PresenceDirectory, Sighting
from pi_team.presence.judging import Hearing, Observer
from pi_team.presence.process import (
    Process,
    exited,
    owner_exited,
    owner_of,
    owner_token,
    parse_owner,
    process_of,
    this_process,
)

__all__ = [
    "Hearing",
    "Observer",
    "Presence",
    "PresenceDirectory",
    "Process",
    "Sighting",
    "exited",
    "owner_exited",
    "owner_of",
    "owner_token",
    "parse_owner",
    "process_of",
    "this_process",
]
