"""Mutation testing of specs (`--circuits-mutate`): which damages of a model do its claims notice? The damages are in `mutants`."""
