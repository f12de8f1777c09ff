"""Where the repository's folders are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
DOCS = ROOT / "docs"
MODELS = ROOT / "models"
GPT2_TOKENIZER = DATA / "gpt2-bpe" / "tokenizer.json.gz"
SNAPSHOTS = ROOT / "tests" / "snapshots"
