"""From a claim to its verdict: evaluation, sequential sampling, the pre-flight check, replication on other prompts."""
