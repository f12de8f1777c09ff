"""Where the parts of a model are: known architectures are looked up, others are probed, and both are verified numerically."""
