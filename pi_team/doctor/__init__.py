"""What is wrong in a teams directory, and the command that mends it.

A doctor only looks: it completes nothing, sweeps nothing and repairs nothing. The one thing it makes is a
hidden directory of its own to try the file system with, and it removes that. Every command that it names
has been run by a test on the fault that it is for.
"""

from pi_team.doctor.examination import Doctor
from pi_team.doctor.findings import Finding

__all__ = ["Doctor", "Finding"]
