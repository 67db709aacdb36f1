"""Verdicts on what came from behind the walls."""
