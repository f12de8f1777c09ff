"""Specs for models of the Hugging Face hub are collected only where they are asked for: `pytest specs/hub`."""

from __future__ import annotations

collect_ignore = ["hub"]
