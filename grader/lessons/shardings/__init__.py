"""The exercises of `shardings`; a file is a stretch of the lesson."""
