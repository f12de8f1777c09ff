"""Claims in Python: what the fixture `circuits` offers."""
