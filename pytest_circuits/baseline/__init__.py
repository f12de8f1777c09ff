"""Baselines: what a release was measured to be, as committed JSON beside each spec, and how a later model differs from it."""
