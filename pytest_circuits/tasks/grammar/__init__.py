"""How prompt pairs are drawn: from a seed, one by one, or by a search."""
