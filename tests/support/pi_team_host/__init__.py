"""Real Pi processes with the extension of pi-team, and the team that they work in."""
