"""The team as immutable values: no clock, file, process or randomness."""
