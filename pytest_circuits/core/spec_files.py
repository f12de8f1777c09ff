"""What spec files are called."""

from __future__ import annotations

SUFFIX = ".circuits.yaml"
