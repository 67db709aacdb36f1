"""The exercises of `cost`; a file is a stretch of the lesson."""
