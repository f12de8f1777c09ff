"""Locating the parts of a model: known architectures are looked up, others probed, and both are verified numerically."""
