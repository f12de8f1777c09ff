"""Circuits of neurons, and curves over circuit size."""
