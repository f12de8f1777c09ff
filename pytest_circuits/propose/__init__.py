"""A first spec for a model: what a few tasks measure, as claims whose bounds the measurements meet, for a person to edit."""
