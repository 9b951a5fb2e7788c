"""The Pi coding agent as a host: `python -m pi_team.hosts.pi` beside each of its sessions (docs/session.md)."""
