"""From a request to its result: read from the store, or measured once and kept. Imports no torch before something must be measured."""
