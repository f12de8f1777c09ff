"""Where heads, MLPs and neurons are in a Hugging Face causal LM. All knowledge about architectures is here.

A known architecture is a line of data in `families.py`; `register_family` adds one; any other is probed by structure (`probe.py`).
"""

from __future__ import annotations

from .base import Anatomy, Block, anatomy_of
from .families import FAMILIES, Family, register_family

__all__ = ["FAMILIES", "Anatomy", "Block", "Family", "anatomy_of", "register_family"]
