"""A function as bytes, and what they say and do."""
