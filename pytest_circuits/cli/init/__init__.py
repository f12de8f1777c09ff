"""`pytest-circuits init`: a first spec for a model, with bounds that its measurements meet, to be edited."""
