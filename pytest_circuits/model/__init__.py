"""Running an unmodified Hugging Face causal LM: architectures as data, hooks, tokenization, batches, logits and metrics."""
