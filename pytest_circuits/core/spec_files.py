"""The file name suffix of specs."""

from __future__ import annotations

SUFFIX = ".circuits.yaml"
