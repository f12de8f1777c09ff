"""`pytest-circuits init`: a first spec for a model, with bounds that its measurements meet, for a person to edit."""
