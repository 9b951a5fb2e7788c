"""pi-team."""
