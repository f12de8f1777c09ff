"""Steps that properties share: examples, attribution, shared sets, controls, curves."""
