"""Baselines: the measurements of a release, committed as JSON next to each spec, and how a later model differs from them."""
