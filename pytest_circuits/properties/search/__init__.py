"""Claims about all prompts or all sets."""
