"""How often verdicts are wrong: simulated studies whose truth is known, untrained models, shuffled answers, planted circuits."""
