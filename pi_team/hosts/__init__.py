"""Programs whose sessions can be members of a team; each is a translation to :mod:`pi_team.session`."""
