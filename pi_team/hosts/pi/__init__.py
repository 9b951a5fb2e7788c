"""The Pi coding agent as a host: a bridge beside each of its sessions, and the extension in Pi."""
