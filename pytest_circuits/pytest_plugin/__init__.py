"""The pytest plugin: options, collection, fixtures, execution of claims, and the reports of a session."""
