"""The exercises of `explicit`; a file is a stretch of the lesson."""
