"""Every sentence of a report: facts go in, English comes out. Wording is changed here and nowhere else."""
