"""Recipe of the reversal and sorting models: two families of small models that differ by seed alone."""
