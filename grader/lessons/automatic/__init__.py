"""The exercises of `automatic`; a file is a stretch of the lesson."""
