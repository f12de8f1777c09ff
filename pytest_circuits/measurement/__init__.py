"""From a request to its result: read from the store, or measured once and stored. Imports no torch before something is measured."""
