"""The `pi-team` command."""
