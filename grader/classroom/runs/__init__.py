"""A hand-in's own code, run behind the walls."""
