"""The lessons and what is told about them, as a website."""
