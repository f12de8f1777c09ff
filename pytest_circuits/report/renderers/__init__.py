"""Renderers: each turns the report into one form of output, and knows nothing but the report."""
