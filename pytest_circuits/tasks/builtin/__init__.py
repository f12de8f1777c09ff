"""Built-in tasks: one file each, plus one line in `TASKS`."""
