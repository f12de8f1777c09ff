"""Consistency: the same components recur, and they are needed."""
