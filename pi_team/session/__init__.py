"""What an agent session does as a member of a team: policy, once, for every host (docs/session.md).

The controller takes events and gives back effects. It knows no host, no pipe and no thread; what it decides
it decides from the record, a clock and what the host said.
"""

from pi_team.session.controller import Controller
from pi_team.session.entries import Session

__all__ = ["Controller", "Session"]
