"""What every other room is built on: units, shares, sources, bounds and verdicts. Imports no torch."""
