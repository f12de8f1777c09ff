"""Claims about drift from a release."""
