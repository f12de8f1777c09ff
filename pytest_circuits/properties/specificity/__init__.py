"""Specificity: what two tasks share, and what each has for itself."""
