"""Recipe of the multi-task reference models: `python -m models.multitask --architecture llama` from the repository's root."""
